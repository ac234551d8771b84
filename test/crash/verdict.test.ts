import { describe, expect, it } from 'vitest'
import type { CrashResult } from './crash.ts'
import { verify } from './verify.ts'
import { formatVerdict, verdictOf } from './verdict.ts'

const empty = { letters: [], byState: {}, byQueue: {}, problems: [] }
const nothing = verify({ lines: [], raw: empty, api: empty, leaseMs: 100 })
const result: CrashResult = {
  ...nothing,
  seconds: 60,
  drain_ms: 0,
  seed: 1,
  store: 'postgres',
  faults: ['processes', 'cuts', 'restarts'],
  kills: 60,
  server_restarts: 4,
  cuts: { ...nothing.cuts, half_open: 15, reset: 5 },
}
const demands = { minKills: 60, latePauses: 0, minRestarts: 4, minCuts: 20 }
const problems = (change: Partial<CrashResult>): string[] =>
  verdictOf({ ...result, ...change }, demands).problems

describe('a verdict', () => {
  it('is ok when there were enough faults and no violations', () => {
    const verdict = verdictOf(result, demands)
    expect(verdict).toMatchObject({ ok: true, problems: [] })
    expect(formatVerdict(verdict)).toContain('faults of processes, cuts, restarts')
  })

  it('is not ok with a violation', () => {
    expect(problems({ lost: 2 })).toEqual(['lost: 2'])
  })

  it('is not ok with too few faults', () => {
    expect(problems({ kills: 59 })).toEqual(['only 59 kills of 60'])
    expect(problems({ server_restarts: 3 })).toEqual(['only 3 server restarts of 4'])
    expect(problems({ cuts: nothing.cuts })).toEqual(['only 0 cuts of 20'])
  })

  it('does not require impossible faults', () => {
    const foreign = { faults: ['processes', 'cuts'], server_restarts: 0 } as const
    expect(problems({ ...foreign, faults: [...foreign.faults] })).toEqual([])
    expect(problems({ faults: ['processes'], server_restarts: 0, cuts: nothing.cuts })).toEqual([])
  })

  it('of a planted bug is ok when the bug was caught', () => {
    expect(problems({ bug: 'ack-before-commit' })).toEqual([
      'the bug ack-before-commit was not caught',
    ])
    expect(problems({ bug: 'ack-before-commit', lost: 1 })).toEqual([])
  })
})
