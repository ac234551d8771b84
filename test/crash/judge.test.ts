import { describe, expect, it } from 'vitest'
import { judge, violationKinds, type Dump, type Evidence, type Judgement } from './judge.ts'
import type { Fact, Line } from './ledger.ts'
import { bytesOf, shaOf, type Plan } from './plan.ts'
import type { Stored } from './rules.ts'

const leaseMs = 100
const id = '018f0000-0000-4000-8000-000000000001'
const plan: Plan = { n: 1, kind: 'fine', maxRetries: 3, workMs: 1, pad: '' }
const poison: Plan = { ...plan, kind: 'poison', how: 'exit' }
const sha = shaOf(bytesOf(plan))

/** A line of process `p` at a moment that serves as monotonic and wall time. */
const at = (t: number, p: string, fact: Fact): Line => ({ t, w: t, p, ...fact })

const tried = (t: number, of: Plan = plan): Line =>
  at(t, 'producer', { e: 'capture.try', id, sha: shaOf(bytesOf(of)), plan: of })
const captured = (t: number, of: Plan = plan): Line[] => [
  tried(t, of),
  at(t + 1, 'producer', { e: 'capture.ok', id }),
]

/** A claim that the store made at `t` and answered 1 ms later. */
const claimed = (t: number, p: string, epoch: number, retries = epoch): Line =>
  at(t + 1, p, {
    e: 'claim.ok',
    since: { t, w: t },
    claims: [{ id, epoch, retries, expiresMs: t + leaseMs }],
  })

const started = (t: number, p: string, epoch: number): Line =>
  at(t, p, { e: 'run.start', id, epoch, attempt: epoch })

type Settling = 'resolve' | 'reschedule' | 'exhaust' | 'park' | 'release'
const asked = (t: number, p: string, epoch: number, action: Settling): Line =>
  at(t, p, { e: 'apply.try', n: t, changes: [{ id, epoch, action }] })
const settled = (
  t: number,
  p: string,
  epoch: number,
  action: Settling = 'resolve',
  result: 'written' | 'conflict' = 'written',
): Line[] => [asked(t, p, epoch, action), at(t + 1, p, { e: 'apply.ok', n: t, results: [result] })]

const run = (t: number, p: string, epoch: number, action: Settling = 'resolve'): Line[] => [
  claimed(t, p, epoch),
  started(t + 2, p, epoch),
  ...settled(t + 10, p, epoch, action),
]

const resolved: Stored = {
  id,
  state: 'resolved',
  epoch: 1,
  retries: 1,
  maxRetries: 3,
  sha,
  actions: ['capture', 'resolve'],
}
const parked: Stored = {
  ...resolved,
  state: 'parked',
  reason: 'crash-loop',
  epoch: 4,
  retries: 3,
  sha: shaOf(bytesOf(poison)),
  actions: ['capture', 'park'],
}

function dumpOf(letters: Stored[]): Dump {
  const byState: Dump['byState'] = {}
  for (const { state } of letters) byState[state] = (byState[state] ?? 0) + 1
  return {
    letters,
    byState,
    byQueue: letters.length > 0 ? { work: letters.length } : {},
    problems: [],
  }
}

function judged(lines: Line[], letters: Stored[], other: Partial<Evidence> = {}): Judgement {
  const order = [...lines].sort((a, b) => a.t - b.t)
  return judge({ lines: order, raw: dumpOf(letters), api: dumpOf(letters), leaseMs, ...other })
}

function violations(judgement: Judgement): string[] {
  return violationKinds.filter((kind) => judgement[kind] > 0)
}

/** The four claims of a letter that killed three workers, and the park by the fourth. */
const crashLoop = [
  ...captured(0, poison),
  ...[1, 2, 3].flatMap((epoch) => [
    claimed(epoch * 200, `w${epoch}`, epoch),
    started(epoch * 200 + 2, `w${epoch}`, epoch),
    at(epoch * 200 + 3, `w${epoch}`, { e: 'self.kill', id, epoch, how: 'exit' }),
  ]),
  claimed(800, 'w4', 4),
  ...settled(805, 'w4', 4, 'park'),
]

describe('judge', () => {
  it('finds nothing in a life without faults', () => {
    const judgement = judged([...captured(0), ...run(10, 'a', 1)], [resolved])
    expect(violations(judgement)).toEqual([])
    expect(judgement).toMatchObject({
      captured: 1,
      resolved: 1,
      claims: 1,
      runs: 1,
      duplicate_runs: 0,
    })
  })

  it('takes a claim after a lapsed lease for a recovery, not for an overlap', () => {
    const lines = [
      ...captured(0),
      claimed(10, 'a', 1),
      started(12, 'a', 1),
      at(20, 'parent', { e: 'kill', of: 'a' }),
      ...run(110, 'b', 2),
    ]
    const stored: Stored = { ...resolved, epoch: 2, retries: 2 }
    const judgement = judged(lines, [stored])
    expect(violations(judgement)).toEqual([])
    expect(judgement).toMatchObject({
      recovered: 1,
      duplicate_runs: 1,
      max_recovery_ms: 91,
      kills: 1,
    })
  })

  it('takes a refused late result for what it is', () => {
    const late = [
      at(150, 'a', { e: 'late.resume', of: 'a', id, epoch: 1 }),
      ...settled(160, 'a', 1, 'resolve', 'conflict'),
      at(162, 'a', { e: 'lease.lost', id, epoch: 1 }),
    ]
    const stop = at(13, 'a', { e: 'self.stop', id, epoch: 1, point: 'start' })
    const lines = [
      ...captured(0),
      claimed(10, 'a', 1),
      started(12, 'a', 1),
      stop,
      ...run(110, 'b', 2),
      ...late,
    ]
    const judgement = judged(lines, [{ ...resolved, epoch: 2, retries: 2 }])
    expect(violations(judgement)).toEqual([])
    expect(judgement).toMatchObject({
      stale_rejected: 1,
      a6: { pauses: 1, rejected: 1, waited: 0, unanswered: 0 },
    })
  })

  it('takes an outcome that nobody knows for neither', () => {
    const unknown = asked(20, 'a', 1, 'resolve')
    const lines = [tried(0), claimed(10, 'a', 1), started(12, 'a', 1), unknown]
    expect(violations(judged(lines, [resolved]))).toEqual([])
    expect(violations(judged([tried(0)], []))).toEqual([])
  })

  it('tells what was never answered, and how much of it was done', () => {
    const away: Line[] = [1, 2].map((n) =>
      at(n, 'producer', { e: 'capture.fail', id, code: 'STORE_UNAVAILABLE' }),
    )
    const unsure = at(21, 'a', { e: 'apply.fail', n: 20, code: 'STORE_UNAVAILABLE' })
    const lines = [tried(0), ...away, claimed(10, 'a', 1), asked(20, 'a', 1, 'resolve'), unsure]
    const kept = judged(lines, [resolved])
    expect(violations(kept)).toEqual([])
    expect(kept.unknown).toEqual({ captures: 1, captures_kept: 1, settles: 1 })
    const gone = judged([tried(0), ...away], [])
    expect(violations(gone)).toEqual([])
    expect(gone.unknown).toEqual({ captures: 1, captures_kept: 0, settles: 0 })
  })

  it('takes one result that was asked for twice for one', () => {
    const lines = [
      ...captured(0),
      claimed(10, 'a', 1),
      asked(20, 'a', 1, 'resolve'),
      ...settled(30, 'a', 1, 'resolve', 'conflict'),
      at(32, 'a', { e: 'settled', id, epoch: 1, as: 'resolved' }),
    ]
    expect(violations(judged(lines, [resolved]))).toEqual([])
  })

  it('takes a late result whose answer was lost for neither refused nor accepted', () => {
    const lines = [
      ...captured(0),
      claimed(10, 'a', 1),
      at(13, 'a', { e: 'self.stop', id, epoch: 1, point: 'settle' }),
      ...run(120, 'b', 2),
      at(150, 'parent', { e: 'late.resume', of: 'a', id, epoch: 1 }),
      asked(160, 'a', 1, 'resolve'),
    ]
    const judgement = judged(lines, [{ ...resolved, epoch: 2, retries: 2 }])
    expect(violations(judgement)).toEqual([])
    expect(judgement.a6).toMatchObject({ pauses: 0, unanswered: 1 })
  })

  it('counts what was done to the server and to the links', () => {
    const lines = [
      at(1, 'parent', { e: 'cut', kind: 'half_open', links: [0, 3] }),
      at(2, 'parent', { e: 'cut', kind: 'reset', links: [1] }),
      at(3, 'parent', { e: 'server.down', kind: 'kill9' }),
      at(4, 'parent', { e: 'server.up' }),
      at(5, 'parent', { e: 'server.down', kind: 'freeze' }),
      at(6, 'worker', { e: 'open.fail', code: 'STORE_UNAVAILABLE' }),
    ]
    expect(judged(lines, [])).toMatchObject({
      cuts: { half_open: 2, replies_lost: 0, reset: 1 },
      server_restarts: 1,
      server_freezes: 1,
      failed_opens: 1,
    })
  })

  it('accepts poison that was parked after exactly its limit', () => {
    const judgement = judged(crashLoop, [parked])
    expect(violations(judgement)).toEqual([])
    expect(judgement).toMatchObject({ self_kills: 3, parked: 1 })
  })

  it('accepts a run that was given back and not counted', () => {
    const lines = [
      ...captured(0),
      ...run(10, 'a', 1, 'release'),
      claimed(30, 'b', 2, 1),
      started(32, 'b', 2),
    ]
    const stored: Stored = {
      ...resolved,
      epoch: 2,
      retries: 1,
      actions: ['capture', 'release', 'resolve'],
    }
    expect(violations(judged([...lines, ...settled(40, 'b', 2)], [stored]))).toEqual([])
  })
})

describe('violations', () => {
  const base = [...captured(0), ...run(10, 'a', 1)]

  const cases: [string, Line[], Stored[], string[]][] = [
    ['lost: acknowledged and gone', captured(0), [], ['lost']],
    ['lost: other bytes', base, [{ ...resolved, sha: 'other' }], ['lost']],
    [
      'ghost: nobody captured it',
      [],
      [{ ...resolved, epoch: 0, retries: 0, actions: [] }],
      ['ghost'],
    ],
    [
      'overlap: claimed while a lease held',
      [...captured(0), claimed(10, 'a', 1), started(12, 'a', 1), ...run(60, 'b', 2)],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['overlap'],
    ],
    [
      'overlap: claimed while a renewed lease held',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        at(92, 'a', {
          e: 'renew.ok',
          since: { t: 90, w: 90 },
          renewals: [{ id, epoch: 1, kept: true }],
        }),
        ...run(120, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['overlap'],
    ],
    [
      'overlap: claimed while a lease held, by a store that thinks it is later',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        at(61, 'b', {
          e: 'claim.ok',
          since: { t: 60, w: 60 },
          claims: [{ id, epoch: 2, retries: 2, expiresMs: 5000 }],
        }),
        ...settled(70, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['overlap'],
    ],
    [
      'overlap: one epoch for two workers',
      [...captured(0), claimed(10, 'a', 1), started(12, 'a', 1), ...run(10, 'b', 1)],
      [resolved],
      ['overlap'],
    ],
    [
      'stale_accepted: a result after a takeover',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        ...run(120, 'b', 2, 'reschedule'),
        ...settled(150, 'a', 1),
      ],
      [{ ...resolved, epoch: 2, retries: 2, actions: ['capture', 'reschedule', 'resolve'] }],
      ['stale_accepted'],
    ],
    [
      'stale_accepted: a renewal after a takeover',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        ...run(120, 'b', 2),
        at(152, 'a', {
          e: 'renew.ok',
          since: { t: 150, w: 150 },
          renewals: [{ id, epoch: 1, kept: true }],
        }),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['overlap', 'stale_accepted'],
    ],
    [
      'dup_settle: two results of one epoch',
      [...base, ...settled(30, 'a', 1)],
      [{ ...resolved, actions: ['capture', 'resolve', 'resolve'] }],
      ['dup_settle'],
    ],
    [
      'dup_settle: a history with two ends',
      [...base, asked(30, 'a', 1, 'resolve')],
      [{ ...resolved, actions: ['capture', 'resolve', 'resolve'] }],
      ['dup_settle'],
    ],
    [
      'reopened: claimed after its end',
      [...base, claimed(200, 'b', 2)],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['reopened'],
    ],
    [
      'stuck: its end was accepted and is gone',
      base,
      [{ ...resolved, state: 'pending' }],
      ['stuck', 'reopened'],
    ],
    [
      'stuck: never ended',
      captured(0),
      [{ ...resolved, state: 'pending', epoch: 0, retries: 0, actions: [] }],
      ['stuck'],
    ],
    [
      'over_attempts: ran too often',
      [
        ...captured(0),
        ...[1, 2, 3, 4].flatMap((epoch) =>
          run(epoch * 20, 'a', epoch, epoch < 4 ? 'reschedule' : 'resolve'),
        ),
      ],
      [
        {
          ...resolved,
          epoch: 4,
          retries: 4,
          actions: ['capture', 'reschedule', 'reschedule', 'reschedule', 'resolve'],
        },
      ],
      ['over_attempts'],
    ],
    [
      'count_drift: a run that was not counted',
      base,
      [{ ...resolved, retries: 0 }],
      ['count_drift'],
    ],
    [
      'count_drift: a claim that was not counted',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        started(12, 'a', 1),
        claimed(200, 'b', 2, 1),
        ...settled(210, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['count_drift'],
    ],
    [
      'count_drift: poison that was parked too early',
      crashLoop
        .filter(({ t }) => t < 600 || t >= 800)
        .map((line) => (line.e === 'claim.ok' && line.t === 801 ? claimed(800, 'w4', 3) : line)),
      [{ ...parked, epoch: 3 }],
      ['count_drift'],
    ],
    [
      'wrong_end: poison that was resolved',
      [...captured(0, poison), ...run(10, 'a', 1)],
      [{ ...resolved, sha: parked.sha }],
      ['wrong_end'],
    ],
    [
      'wrong_end: parked for another reason',
      crashLoop,
      [{ ...parked, reason: 'permanent' }],
      ['count_drift', 'wrong_end'],
    ],
    [
      'history_drift: an accepted result that left no trace',
      base,
      [{ ...resolved, actions: ['capture'] }],
      ['history_drift'],
    ],
    [
      'history_drift: a result that was told and left no trace',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        asked(20, 'a', 1, 'resolve'),
        at(30, 'a', { e: 'settled', id, epoch: 1, as: 'resolved' }),
      ],
      [{ ...resolved, actions: ['capture'] }],
      ['history_drift'],
    ],
    [
      'dup_settle: a result that was told, and another that was written',
      [
        ...captured(0),
        claimed(10, 'a', 1),
        asked(20, 'a', 1, 'resolve'),
        at(30, 'a', { e: 'settled', id, epoch: 1, as: 'resolved' }),
        ...run(120, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['dup_settle', 'history_drift'],
    ],
    [
      'odd_errors: a call that failed for another reason than an absent store',
      [...base, at(50, 'a', { e: 'apply.fail', n: 9, code: 'TypeError: no such thing' })],
      [resolved],
      ['odd_errors'],
    ],
    [
      'unexpected_exits: a process that died by itself',
      [...base, at(50, 'parent', { e: 'exit', of: 'a', code: 1, signal: null, asked: false })],
      [resolved],
      ['unexpected_exits'],
    ],
    [
      'hung_exits: a process that did not end when it was asked to',
      [...base, at(50, 'parent', { e: 'hung', of: 'a' })],
      [resolved],
      ['hung_exits'],
    ],
  ]

  it.each(cases)('finds %s', (_name, lines, letters, kinds) => {
    expect(violations(judged(lines, letters))).toEqual(kinds)
  })

  it('finds index_drift: counts, listing or bytes that differ from the rows', () => {
    const raw = dumpOf([resolved])
    const views: Dump[] = [
      { ...raw, byState: { resolved: 2 } },
      { ...raw, byQueue: { work: 2 } },
      { ...raw, letters: [] },
      { ...raw, letters: [{ ...resolved, retries: 2 }] },
      { ...raw, problems: ['integrity check: row missing from index'] },
    ]
    for (const api of views)
      expect(violations(judged(base, [resolved], { api }))).toEqual(['index_drift'])
  })

  it('counts a late result that was accepted as not refused', () => {
    const lines = [
      ...captured(0),
      claimed(10, 'a', 1),
      at(13, 'a', { e: 'self.stop', id, epoch: 1, point: 'settle' }),
      ...run(120, 'b', 2),
      at(150, 'parent', { e: 'late.resume', of: 'a', id, epoch: 1 }),
      ...settled(160, 'a', 1),
    ]
    const stored: Stored = {
      ...resolved,
      epoch: 2,
      retries: 2,
      actions: ['capture', 'resolve', 'resolve'],
    }
    const judgement = judged(lines, [stored])
    expect(violations(judgement)).toEqual(['stale_accepted', 'dup_settle'])
    expect(judgement.a6).toMatchObject({ pauses: 1, rejected: 0 })
  })
})
