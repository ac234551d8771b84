import { describe, expect, it } from 'vitest'
import { outcomeByHistory, outcomeOf } from '../../src/bulk/outcome.ts'
import { isMarkedBy, noteOf } from '../../src/letter/bulk-action.ts'
import type { DeadLetter, HistoryEntry } from '../../src/letter/letter.ts'
import {
  claim,
  lapse,
  note,
  park,
  release,
  resolve,
  retry,
  withChange,
} from '../../src/letter/moves.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const at = '2026-01-01T00:00:00.000Z'
const atMs = Date.parse(at)
const actionId = '0198c7c0-0000-7000-8000-000000000001'
const by = { at, actor: 'ada', note: noteOf({ id: actionId }), guard: 'version' } as const
const worker = { at, actor: 'w1', guard: 'epoch' } as const

const parked = aLetter({ state: 'parked', version: 4 })
const planned = { id: parked.id, version: 4 }
const retried = withChange(parked, retry(parked, by))
const running = claim(retried, { worker: 'w1', atMs, leaseMs: 1000 })

describe('the mark of an action', () => {
  it('is in the history of the letters that it changed', () => {
    expect(isMarkedBy(actionId, parked)).toBe(false)
    expect(isMarkedBy(actionId, retried)).toBe(true)
    expect(isMarkedBy(actionId.replace('1', '2'), retried)).toBe(false)
  })

  it('is not a note that a person wrote', () => {
    const noted = withChange(parked, note(parked, by))
    expect(isMarkedBy(actionId, noted)).toBe(false)
  })
})

describe('the outcome of a retried letter', () => {
  it('is not known before its run has ended', () => {
    expect(outcomeOf(planned, retried)).toEqual({ outcome: 'waiting' })
    expect(outcomeOf(planned, running)).toEqual({ outcome: 'waiting' })
    expect(outcomeByHistory(actionId, running)).toEqual({ outcome: 'waiting' })
  })

  it('is success after one run', () => {
    const resolved = withChange(running, resolve(running, worker))
    expect(outcomeOf(planned, resolved)).toEqual({ outcome: 'succeeded', runs: 1 })
    expect(outcomeByHistory(actionId, resolved)).toEqual({ outcome: 'succeeded', runs: 1 })
  })

  it('counts the run of a worker that died', () => {
    const later = claim(running, { worker: 'w2', atMs: atMs + 2000, leaseMs: 1000 })
    const resolved = withChange(later, resolve(later, { ...worker, actor: 'w2' }))
    expect(outcomeOf(planned, resolved)).toBeUndefined()
    expect(outcomeByHistory(actionId, resolved)).toEqual({ outcome: 'succeeded', runs: 2 })
  })

  it('does not count a run that was released', () => {
    const released = withChange(running, release(running, worker))
    expect(outcomeByHistory(actionId, released)).toEqual({ outcome: 'waiting' })
  })

  it('is the first outcome, even if the letter ran again since', () => {
    const entry = (change: Partial<HistoryEntry>): HistoryEntry => ({
      at,
      actor: 'w1',
      action: 'reschedule',
      from: 'retrying',
      to: 'pending',
      epoch: 1,
      ...change,
    })
    const failure = { name: 'Error', message: 'refused', category: 'network' } as const
    const resolved: DeadLetter = {
      ...retried,
      state: 'resolved',
      retries: 2,
      version: 9,
      history: [
        ...retried.history,
        lapse({ worker: 'w0', epoch: 1, expiresAt: at }, at),
        entry({ failure }),
        entry({ action: 'resolve', to: 'resolved', epoch: 3 }),
      ],
    }
    expect(outcomeOf(planned, resolved)).toBeUndefined()
    expect(outcomeByHistory(actionId, resolved)).toEqual({
      outcome: 'failed',
      runs: 2,
      error: 'Error: refused',
    })
  })

  it('says who settled the letter without a run', () => {
    const note = 'no worker handles this queue'
    const sweep = { at, actor: 'sweep', note, guard: 'version' } as const
    const unhandled = withChange(retried, park(retried, sweep, { reason: 'no-handler' }))
    expect(outcomeByHistory(actionId, unhandled)).toEqual({
      outcome: 'failed',
      error: `park by sweep: ${note}`,
    })
    const person = { at, actor: 'bob', guard: 'version' } as const
    const resolved = withChange(retried, resolve(retried, person))
    expect(outcomeByHistory(actionId, resolved)).toEqual({
      outcome: 'skipped',
      error: 'resolve by bob',
    })
  })
})
