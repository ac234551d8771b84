import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { done, Progress } from '../../../src/backends/kafka/progress.ts'

describe('Progress', () => {
  it('advances the base over adjacent records that are done', () => {
    const progress = new Progress(10, '')
    for (const offset of [12, 11, 14]) progress.set(offset, done)
    expect(progress.base).toBe(10)
    progress.set(10, done)
    expect(progress.base).toBe(13)
    expect(progress.doneAhead).toBe(1)
  })

  it('writes runs of equal states without the untouched end', () => {
    const progress = new Progress(0, '')
    progress.set(0, 2)
    for (let offset = 1; offset <= 500; offset++) progress.set(offset, done)
    progress.set(504, 1)
    progress.set(510, 0)
    expect(progress.toMetadata()).toBe('2,x*500,0*3,1')
  })

  it('reads its own metadata', () => {
    const marks = fc.array(fc.integer({ min: done, max: 3 }), { maxLength: 200 })
    fc.assert(
      fc.property(fc.nat(1000), marks, (base, all) => {
        const progress = new Progress(base, '')
        for (const [at, mark] of all.entries()) progress.set(base + at, mark)
        const again = new Progress(progress.base, progress.toMetadata())
        for (const at of all.keys())
          expect(again.stateOf(base + at)).toBe(progress.stateOf(base + at))
        expect(again.base).toBe(progress.base)
      }),
    )
  })

  it('cuts metadata at the limit of the broker', () => {
    const progress = new Progress(0, '')
    for (let offset = 0; offset < 10_000; offset++) progress.set(offset, (offset % 3) + 1)
    const metadata = progress.toMetadata()
    expect(metadata.length).toBeLessThanOrEqual(4096)
    expect(metadata.length).toBeGreaterThan(4000)
    const again = new Progress(0, metadata)
    expect(again.stateOf(1000)).toBe(progress.stateOf(1000))
    expect(again.stateOf(9999)).toBe(0)
  })

  it('knows the same states after any sequence of changes and handovers', () => {
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
          // A record that is done stays done.
          if (known.get(offset) === done) continue
          progress.set(offset, mark)
          known.set(offset, mark)
          // Another member takes over.
          if (jump === 1) progress = new Progress(progress.base, progress.toMetadata())
          if (jump > 0) continue
          for (let at = 0; at < offset; at++) known.set(at, done)
          progress.moveTo(offset)
        }
        expect(progress.base).toBe(first())
        const again = new Progress(progress.base, progress.toMetadata())
        let doneAhead = 0
        for (const [offset, mark] of known) {
          if (offset > first() && mark === done) doneAhead += 1
          expect([progress.stateOf(offset), again.stateOf(offset)]).toEqual([mark, mark])
        }
        expect(progress.doneAhead).toBe(doneAhead)
      }),
    )
  })

  it('loses no state while not more records are started than there is room for', () => {
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
            progress.set(offset, 0)
            waiting.push(offset)
            next = offset + 1
          }
          for (const offset of waiting.splice(0, Math.min(begin, progress.room))) {
            progress.set(offset, 1)
            known.set(offset, 1)
            // The first record stays open.
            if (offset > 0) open.push(offset)
          }
          for (const n of ended) {
            if (open.length === 0) break
            const [offset] = open.splice(n % open.length, 1)
            progress.set(offset!, done)
            known.set(offset!, done)
          }
          const again = new Progress(progress.base, progress.toMetadata())
          for (const [offset, mark] of known) expect(again.stateOf(offset)).toBe(mark)
        }
      }),
      { numRuns: 30, endOnFailure: true },
    )
  })

  it('has room for one record when the metadata is full and no record is open', () => {
    const before = new Progress(0, '')
    for (let offset = 0; offset < 10_000; offset++) before.set(offset, offset % 2 ? done : 1)
    const progress = new Progress(0, before.toMetadata())
    expect(progress.room).toBe(1)
    progress.set(0, 2)
    expect(progress.room).toBe(0)
    progress.set(0, done)
    expect([progress.base, progress.room]).toEqual([2, 1])
  })

  it('knows records far after the first open one', () => {
    const progress = new Progress(5, '')
    progress.set(5, 1)
    progress.skip(6, 4_000_000_000)
    progress.set(4_000_000_000, done)
    const again = new Progress(5, progress.toMetadata())
    expect([again.stateOf(5), again.stateOf(4_000_000_000)]).toEqual([1, done])
    again.set(5, done)
    expect(again.base).toBe(4_000_000_001)
  })

  it('skips offsets without records', () => {
    const progress = new Progress(5, '')
    progress.skip(5, 8)
    expect(progress.base).toBe(8)
    progress.set(8, 1)
    progress.skip(9, 11)
    expect(progress.base).toBe(8)
    progress.set(8, done)
    expect(progress.base).toBe(11)
  })

  it('forgets records before the offset it moves to and keeps later ones', () => {
    const progress = new Progress(0, '1,2,x,3')
    progress.moveTo(1)
    expect([progress.base, progress.stateOf(1), progress.stateOf(3)]).toEqual([1, 2, 3])
    progress.moveTo(2)
    expect(progress.base).toBe(3)
    progress.moveTo(1)
    expect(progress.base).toBe(3)
    progress.moveTo(100)
    expect([progress.base, progress.reach]).toEqual([100, 0])
  })

  it('ignores metadata of other programs', () => {
    const tooFar = '1*9007199254740990'
    for (const metadata of ['hello', '{"o":1}', '1,,2', tooFar, `${tooFar},1`, '1*1e9', '-1'])
      expect(new Progress(7, metadata).reach).toBe(0)
  })
})
