import { expect, it } from 'vitest'
import { teller, type LoopEvent } from '../../src/loops/events.ts'

const depth: LoopEvent = { type: 'depth', mailbox: 'dlq', depth: 1 }

it('a listener and a hub hear the same', () => {
  const one: LoopEvent[] = []
  const two: LoopEvent[] = []
  const hub = { emit: (event: LoopEvent): void => void two.push(event) }
  teller({ onEvent: (event) => void one.push(event), hub })(depth)
  expect(one).toEqual([depth])
  expect(two).toEqual([depth])
})

it('a listener that throws or rejects is told about once, and never reaches who tells', async () => {
  const heard: LoopEvent[] = []
  const hub = { emit: (event: LoopEvent): void => void heard.push(event) }
  const tell = teller({
    hub,
    onEvent: () => {
      throw new Error('deaf')
    },
  })
  tell(depth)
  expect(heard.map(({ type }) => type)).toEqual(['error', 'depth'])
  teller({ hub, onEvent: () => Promise.reject(new Error('deaf')) })(depth)
  await Promise.resolve()
  expect(heard.map(({ type }) => type)).toEqual(['error', 'depth', 'depth', 'error'])
})
