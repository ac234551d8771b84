import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Hidden, type Hiding } from '../../../src/mailboxes/memory/hidden.ts'

const inOrder = (a: Hiding, b: Hiding): number => a.hiddenUntilMs - b.hiddenUntilMs || a.seq - b.seq

describe('Hidden', () => {
  it('has the earliest item at the top after any additions, removals and updates', () => {
    const step = fc.record({
      act: fc.constantFrom('add', 'add', 'remove', 'move', 'pop'),
      ms: fc.nat(20),
      which: fc.nat(1000),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (run) => {
        const hidden = new Hidden<Hiding>()
        let items: Hiding[] = []
        for (const [seq, { act, ms, which }] of run.entries()) {
          const one = items[which % Math.max(1, items.length)]
          if (act === 'add') {
            const item = { hiddenUntilMs: ms, seq, place: -1 }
            items.push(item)
            hidden.add(item)
          } else if (act === 'move' && one) {
            one.hiddenUntilMs = ms
            hidden.update(one)
          } else {
            const gone = act === 'pop' ? hidden.first() : one
            if (!gone) continue
            hidden.remove(gone)
            hidden.remove(gone)
            expect(gone.place).toBe(-1)
            items = items.filter((item) => item !== gone)
          }
          expect(hidden.first()).toBe(items.toSorted(inOrder)[0])
        }
      }),
    )
  })

  it('returns items in order of time, then of sequence', () => {
    const hidden = new Hidden<Hiding>()
    const items = Array.from({ length: 1000 }, (_, seq) => ({
      hiddenUntilMs: (seq * 7919) % 101,
      seq,
      place: -1,
    }))
    for (const item of items) hidden.add(item)
    const given: Hiding[] = []
    for (let first = hidden.first(); first; first = hidden.first()) {
      hidden.remove(first)
      given.push(first)
    }
    expect(given).toEqual(items.toSorted(inOrder))
  })

  it('removes all items', () => {
    const hidden = new Hidden<Hiding>()
    const item = { hiddenUntilMs: 1, seq: 1, place: -1 }
    hidden.add(item)
    hidden.clear()
    expect(hidden.first()).toBeUndefined()
    hidden.remove(item)
    hidden.add(item)
    expect(hidden.first()).toBe(item)
  })
})
