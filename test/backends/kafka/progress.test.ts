import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { done, Progress } from '../../../src/backends/kafka/progress.ts'

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

  it('knows the same however records are done, moved over and handed on', () => {
    const step = fc.tuple(fc.nat(60), fc.constantFrom(done, done, 0, 1, 2), fc.nat(40))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        let progress = new Progress(0, '')
        const known = new Map<number, number>()
        const first = (): number => {
          for (let at = 0; ; at++) if (known.get(at) !== done) return at
        }
        for (const [ahead, mark, jump] of steps) {
          const offset = first() + ahead
          progress.mark(offset, mark)
          known.set(offset, mark)
          // Somebody else goes on with it.
          if (jump === 1) progress = new Progress(progress.base, progress.note())
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

  it('keeps all that is known as long as no more are begun than there is room for', () => {
    const begins = fc.record({ begin: fc.nat(400), done: fc.array(fc.nat(), { maxLength: 300 }) })
    const gaps = fc.infiniteStream(fc.constantFrom(0, 0, 0, 0, 1, 70_000))
    fc.assert(
      fc.property(fc.array(begins, { maxLength: 40 }), gaps, (steps, gap) => {
        const progress = new Progress(0, '')
        const known = new Map<number, number>()
        const open: number[] = []
        const waiting: number[] = []
        let next = 0
        for (const { begin, done: ended } of steps) {
          for (let n = waiting.length; n < begin; n++) {
            const offset = next + gap.next().value!
            progress.skip(next, offset)
            progress.mark(offset, 0)
            waiting.push(offset)
            next = offset + 1
          }
          for (const offset of waiting.splice(0, Math.min(begin, progress.room))) {
            progress.mark(offset, 1)
            known.set(offset, 1)
            // The first stays open.
            if (offset > 0) open.push(offset)
          }
          for (const n of ended) {
            if (open.length === 0) break
            const [offset] = open.splice(n % open.length, 1)
            progress.mark(offset!, done)
            known.set(offset!, done)
          }
          const again = new Progress(progress.base, progress.note())
          for (const [offset, mark] of known) expect(again.markOf(offset)).toBe(mark)
        }
      }),
      { numRuns: 30, endOnFailure: true },
    )
  })

  it('has room for one when the note is full and none is begun, so that it goes on', () => {
    const before = new Progress(0, '')
    for (let offset = 0; offset < 10_000; offset++) before.mark(offset, offset % 2 ? done : 1)
    const progress = new Progress(0, before.note())
    expect(progress.room).toBe(1)
    progress.mark(0, 2)
    expect(progress.room).toBe(0)
    progress.mark(0, done)
    expect([progress.base, progress.room]).toEqual([2, 1])
  })

  it('knows what lies far behind one that is not done', () => {
    const progress = new Progress(5, '')
    progress.mark(5, 1)
    progress.skip(6, 4_000_000_000)
    progress.mark(4_000_000_000, done)
    const again = new Progress(5, progress.note())
    expect([again.markOf(5), again.markOf(4_000_000_000)]).toEqual([1, done])
    again.mark(5, done)
    expect(again.base).toBe(4_000_000_001)
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
    const tooFar = '1*9007199254740990'
    for (const note of ['hello', '{"o":1}', '1,,2', tooFar, `${tooFar},1`, '1*1e9', '-1'])
      expect(new Progress(7, note).reach).toBe(0)
  })
})
