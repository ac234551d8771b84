import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { done, Progress } from '../../src/kafka/progress.ts'

describe('Progress', () => {
  it('moves over what is done in one piece, and no further', () => {
    const progress = new Progress(10, '')
    for (const offset of [12, 11, 14]) progress.mark(offset, done)
    expect(progress.base).toBe(10)
    progress.mark(10, done)
    expect(progress.base).toBe(13)
    expect(progress.doneAhead).toBe(1)
  })

  it('writes runs of the same, and nothing of what is untouched at the end', () => {
    const progress = new Progress(0, '')
    progress.mark(0, 2)
    for (let offset = 1; offset <= 500; offset++) progress.mark(offset, done)
    progress.mark(504, 1)
    progress.mark(510, 0)
    expect(progress.note()).toBe('2,x*500,0*3,1')
  })

  it('reads what it wrote', () => {
    const marks = fc.array(fc.integer({ min: done, max: 3 }), { maxLength: 200 })
    fc.assert(
      fc.property(fc.nat(1000), marks, (base, all) => {
        const progress = new Progress(base, '')
        for (const [at, mark] of all.entries()) progress.mark(base + at, mark)
        const again = new Progress(progress.base, progress.note())
        for (const at of all.keys())
          expect(again.markOf(base + at)).toBe(progress.markOf(base + at))
        expect(again.base).toBe(progress.base)
      }),
    )
  })

  it('writes as much as the broker keeps, and what it leaves out is untouched', () => {
    const progress = new Progress(0, '')
    for (let offset = 0; offset < 10_000; offset++) progress.mark(offset, (offset % 3) + 1)
    const note = progress.note()
    expect(note.length).toBeLessThanOrEqual(4096)
    expect(note.length).toBeGreaterThan(4000)
    const again = new Progress(0, note)
    expect(again.markOf(1000)).toBe(progress.markOf(1000))
    expect(again.markOf(9999)).toBe(0)
  })

  it('knows the same however records are done and moved over', () => {
    const step = fc.tuple(fc.nat(60), fc.constantFrom(done, done, 0, 1, 2), fc.nat(40))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const progress = new Progress(0, '')
        const known = new Map<number, number>()
        const first = (): number => {
          for (let at = 0; ; at++) if (known.get(at) !== done) return at
        }
        for (const [ahead, mark, jump] of steps) {
          const offset = first() + ahead
          progress.mark(offset, mark)
          known.set(offset, mark)
          if (jump > 0) continue
          for (let at = 0; at < offset; at++) known.set(at, done)
          progress.moveTo(offset)
        }
        expect(progress.base).toBe(first())
        const again = new Progress(progress.base, progress.note())
        let doneAhead = 0
        for (const [offset, mark] of known) {
          if (offset > first() && mark === done) doneAhead += 1
          expect([progress.markOf(offset), again.markOf(offset)]).toEqual([mark, mark])
        }
        expect(progress.doneAhead).toBe(doneAhead)
      }),
    )
  })

  it('skips what is not there', () => {
    const progress = new Progress(5, '')
    progress.skip(5, 8)
    expect(progress.base).toBe(8)
    progress.mark(8, 1)
    progress.skip(9, 11)
    expect(progress.base).toBe(8)
    progress.mark(8, done)
    expect(progress.base).toBe(11)
  })

  it('forgets what lies before where it is moved, and keeps what lies behind', () => {
    const progress = new Progress(0, '1,2,x,3')
    progress.moveTo(1)
    expect([progress.base, progress.markOf(1), progress.markOf(3)]).toEqual([1, 2, 3])
    progress.moveTo(2)
    expect(progress.base).toBe(3)
    progress.moveTo(1)
    expect(progress.base).toBe(3)
    progress.moveTo(100)
    expect([progress.base, progress.reach]).toEqual([100, 0])
  })

  it('takes the notes of others for none', () => {
    for (const note of ['hello', '{"o":1}', '1,,2', 'x*99999999', '1*9999999,1*9999999', '-1'])
      expect(new Progress(7, note).reach).toBe(0)
  })
})
