import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { onAbort } from '../../src/clock/on-abort.ts'

describe('onAbort', () => {
  it('calls all who have not taken it back, once, by one listener', () => {
    const stop = new AbortController()
    const called: string[] = []
    onAbort(stop.signal, () => called.push('a'))
    const forgetB = onAbort(stop.signal, () => called.push('b'))
    const forgetC = onAbort(stop.signal, () => called.push('c'))
    forgetB()
    forgetB()
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1)
    stop.abort()
    stop.abort()
    forgetC()
    expect(called.toSorted()).toEqual(['a', 'c'])
  })

  it('listens to a signal only while somebody waits for it', () => {
    const { signal } = new AbortController()
    const forgets = [1, 2].map(() => onAbort(signal, () => {}))
    forgets[0]!()
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    forgets[1]!()
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    onAbort(signal, () => {})
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  })

  it('leaves out whoever takes it back while others are called', () => {
    const stop = new AbortController()
    const called: string[] = []
    const forgets: (() => void)[] = []
    for (const name of ['a', 'b'])
      forgets.push(
        onAbort(stop.signal, () => {
          called.push(name)
          for (const forget of forgets) forget()
        }),
      )
    stop.abort()
    expect(called).toHaveLength(1)
  })
})
