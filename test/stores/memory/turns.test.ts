import { describe, expect, it } from 'vitest'
import { Turns } from '../../../src/stores/memory/turns.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aLetter } from '../../../src/testing/index.ts'

describe('Turns', () => {
  it('let a few letters pass, and then have all wait for one turn of the event loop', async () => {
    const turns = new Turns()
    expect(turns.after(30)).toBeUndefined()
    expect(turns.after(19)).toBeUndefined()
    let turned = false
    setImmediate(() => (turned = true))
    const waiting = turns.after(1)
    expect(turns.after(1)).toBe(waiting)
    await waiting
    expect(turned).toBe(true)
    expect(turns.after(49)).toBeUndefined()
  })

  it('keep a caller that never pauses from holding up the event loop', async () => {
    const store = memoryStore()
    let turned = false
    setImmediate(() => (turned = true))
    for (let n = 0; n < 50; n++) await store.add([aLetter()])
    expect(turned).toBe(true)
  })
})
