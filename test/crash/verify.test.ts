import { describe, expect, it } from 'vitest'
import { verify, violationKinds, type Dump, type Evidence, type Findings } from './verify.ts'
import type { Fact, Line } from './ledger.ts'
import { bytesOf, shaOf, type Plan } from './plan.ts'
import type { Stored } from './rules.ts'

const leaseMs = 100
const id = '018f0000-0000-4000-8000-000000000001'
const plan: Plan = { n: 1, kind: 'fine', maxRetries: 3, workMs: 1, pad: '' }
const poison: Plan = { ...plan, kind: 'poison', how: 'exit' }
const sha = shaOf(bytesOf(plan))

/** A line of process `p` at time `t`, both monotonic and wall time. */
const at = (t: number, p: string, fact: Fact): Line => ({ t, w: t, p, ...fact })

const triedLine = (t: number, of: Plan = plan): Line =>
  at(t, 'producer', { e: 'capture.try', id, sha: shaOf(bytesOf(of)), plan: of })
const capturedLines = (t: number, of: Plan = plan): Line[] => [
  triedLine(t, of),
  at(t + 1, 'producer', { e: 'capture.ok', id }),
]

/** A claim that the store made at `t` and answered 1 ms later. */
const claimLine = (t: number, p: string, epoch: number, retries = epoch): Line =>
  at(t + 1, p, {
    e: 'claim.ok',
    since: { t, w: t },
    claims: [{ id, epoch, retries, expiresMs: t + leaseMs }],
  })

const startLine = (t: number, p: string, epoch: number): Line =>
  at(t, p, { e: 'run.start', id, epoch, attempt: epoch })

type SettleAction = 'resolve' | 'reschedule' | 'exhaust' | 'park' | 'release'
const applyTryLine = (t: number, p: string, epoch: number, action: SettleAction): Line =>
  at(t, p, { e: 'apply.try', n: t, changes: [{ id, epoch, action }] })
const settleLines = (
  t: number,
  p: string,
  epoch: number,
  action: SettleAction = 'resolve',
  result: 'written' | 'conflict' = 'written',
): Line[] => [
  applyTryLine(t, p, epoch, action),
  at(t + 1, p, { e: 'apply.ok', n: t, results: [result] }),
]

const run = (t: number, p: string, epoch: number, action: SettleAction = 'resolve'): Line[] => [
  claimLine(t, p, epoch),
  startLine(t + 2, p, epoch),
  ...settleLines(t + 10, p, epoch, action),
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

function verifyLines(lines: Line[], letters: Stored[], other: Partial<Evidence> = {}): Findings {
  const order = [...lines].sort((a, b) => a.t - b.t)
  return verify({ lines: order, raw: dumpOf(letters), api: dumpOf(letters), leaseMs, ...other })
}

function violations(findings: Findings): string[] {
  return violationKinds.filter((kind) => findings[kind] > 0)
}

/** The four claims of a letter that killed three workers, and the park by the fourth. */
const crashLoop = [
  ...capturedLines(0, poison),
  ...[1, 2, 3].flatMap((epoch) => [
    claimLine(epoch * 200, `w${epoch}`, epoch),
    startLine(epoch * 200 + 2, `w${epoch}`, epoch),
    at(epoch * 200 + 3, `w${epoch}`, { e: 'self.kill', id, epoch, how: 'exit' }),
  ]),
  claimLine(800, 'w4', 4),
  ...settleLines(805, 'w4', 4, 'park'),
]

describe('verify', () => {
  it('finds no violation in a run without faults', () => {
    const findings = verifyLines([...capturedLines(0), ...run(10, 'a', 1)], [resolved])
    expect(violations(findings)).toEqual([])
    expect(findings).toMatchObject({
      captured: 1,
      resolved: 1,
      claims: 1,
      runs: 1,
      duplicate_runs: 0,
    })
  })

  it('counts a claim after an expired lease as a recovery, not as an overlap', () => {
    const lines = [
      ...capturedLines(0),
      claimLine(10, 'a', 1),
      startLine(12, 'a', 1),
      at(20, 'parent', { e: 'kill', of: 'a' }),
      ...run(110, 'b', 2),
    ]
    const stored: Stored = { ...resolved, epoch: 2, retries: 2 }
    const findings = verifyLines(lines, [stored])
    expect(violations(findings)).toEqual([])
    expect(findings).toMatchObject({
      recovered: 1,
      duplicate_runs: 1,
      max_recovery_ms: 91,
      kills: 1,
    })
  })

  it('accepts a late result that was refused', () => {
    const late = [
      at(150, 'a', { e: 'late.resume', of: 'a', id, epoch: 1 }),
      ...settleLines(160, 'a', 1, 'resolve', 'conflict'),
      at(162, 'a', { e: 'lease.lost', id, epoch: 1 }),
    ]
    const stop = at(13, 'a', { e: 'self.stop', id, epoch: 1, point: 'start' })
    const lines = [
      ...capturedLines(0),
      claimLine(10, 'a', 1),
      startLine(12, 'a', 1),
      stop,
      ...run(110, 'b', 2),
      ...late,
    ]
    const findings = verifyLines(lines, [{ ...resolved, epoch: 2, retries: 2 }])
    expect(violations(findings)).toEqual([])
    expect(findings).toMatchObject({
      stale_rejected: 1,
      a6: { pauses: 1, rejected: 1, waited: 0, unanswered: 0 },
    })
  })

  it('treats an unknown outcome as neither written nor refused', () => {
    const unknown = applyTryLine(20, 'a', 1, 'resolve')
    const lines = [triedLine(0), claimLine(10, 'a', 1), startLine(12, 'a', 1), unknown]
    expect(violations(verifyLines(lines, [resolved]))).toEqual([])
    expect(violations(verifyLines([triedLine(0)], []))).toEqual([])
  })

  it('counts calls without an answer, and how many of them took effect', () => {
    const away: Line[] = [1, 2].map((n) =>
      at(n, 'producer', { e: 'capture.fail', id, code: 'STORE_UNAVAILABLE' }),
    )
    const unsure = at(21, 'a', { e: 'apply.fail', n: 20, code: 'STORE_UNAVAILABLE' })
    const lines = [
      triedLine(0),
      ...away,
      claimLine(10, 'a', 1),
      applyTryLine(20, 'a', 1, 'resolve'),
      unsure,
    ]
    const kept = verifyLines(lines, [resolved])
    expect(violations(kept)).toEqual([])
    expect(kept.unknown).toEqual({ captures: 1, captures_kept: 1, settles: 1 })
    const gone = verifyLines([triedLine(0), ...away], [])
    expect(violations(gone)).toEqual([])
    expect(gone.unknown).toEqual({ captures: 1, captures_kept: 0, settles: 0 })
  })

  it('counts a result that was requested twice as one', () => {
    const lines = [
      ...capturedLines(0),
      claimLine(10, 'a', 1),
      applyTryLine(20, 'a', 1, 'resolve'),
      ...settleLines(30, 'a', 1, 'resolve', 'conflict'),
      at(32, 'a', { e: 'settled', id, epoch: 1, as: 'resolved' }),
    ]
    expect(violations(verifyLines(lines, [resolved]))).toEqual([])
  })

  it('counts a late result whose answer was lost as neither refused nor accepted', () => {
    const lines = [
      ...capturedLines(0),
      claimLine(10, 'a', 1),
      at(13, 'a', { e: 'self.stop', id, epoch: 1, point: 'settle' }),
      ...run(120, 'b', 2),
      at(150, 'parent', { e: 'late.resume', of: 'a', id, epoch: 1 }),
      applyTryLine(160, 'a', 1, 'resolve'),
    ]
    const findings = verifyLines(lines, [{ ...resolved, epoch: 2, retries: 2 }])
    expect(violations(findings)).toEqual([])
    expect(findings.a6).toMatchObject({ pauses: 0, unanswered: 1 })
  })

  it('counts the faults of the server and of the connections', () => {
    const lines = [
      at(1, 'parent', { e: 'cut', kind: 'half_open', proxies: [0, 3] }),
      at(2, 'parent', { e: 'cut', kind: 'reset', proxies: [1] }),
      at(3, 'parent', { e: 'server.down', kind: 'kill9' }),
      at(4, 'parent', { e: 'server.up' }),
      at(5, 'parent', { e: 'server.down', kind: 'freeze' }),
      at(6, 'worker', { e: 'open.fail', code: 'STORE_UNAVAILABLE' }),
    ]
    expect(verifyLines(lines, [])).toMatchObject({
      cuts: { half_open: 2, replies_lost: 0, reset: 1 },
      server_restarts: 1,
      server_freezes: 1,
      failed_opens: 1,
    })
  })

  it('accepts a poison letter that was parked after exactly its limit', () => {
    const findings = verifyLines(crashLoop, [parked])
    expect(violations(findings)).toEqual([])
    expect(findings).toMatchObject({ self_kills: 3, parked: 1 })
  })

  it('accepts a run that was released and not counted', () => {
    const lines = [
      ...capturedLines(0),
      ...run(10, 'a', 1, 'release'),
      claimLine(30, 'b', 2, 1),
      startLine(32, 'b', 2),
    ]
    const stored: Stored = {
      ...resolved,
      epoch: 2,
      retries: 1,
      actions: ['capture', 'release', 'resolve'],
    }
    expect(violations(verifyLines([...lines, ...settleLines(40, 'b', 2)], [stored]))).toEqual([])
  })
})

describe('violations', () => {
  const base = [...capturedLines(0), ...run(10, 'a', 1)]

  const cases: [string, Line[], Stored[], string[]][] = [
    ['lost: acknowledged and missing', capturedLines(0), [], ['lost']],
    ['lost: other bytes', base, [{ ...resolved, sha: 'other' }], ['lost']],
    ['ghost: never captured', [], [{ ...resolved, epoch: 0, retries: 0, actions: [] }], ['ghost']],
    [
      'overlap: claimed during a lease',
      [...capturedLines(0), claimLine(10, 'a', 1), startLine(12, 'a', 1), ...run(60, 'b', 2)],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['overlap'],
    ],
    [
      'overlap: claimed during a renewed lease',
      [
        ...capturedLines(0),
        claimLine(10, 'a', 1),
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
      'overlap: claimed during a lease, by a store with a clock ahead',
      [
        ...capturedLines(0),
        claimLine(10, 'a', 1),
        at(61, 'b', {
          e: 'claim.ok',
          since: { t: 60, w: 60 },
          claims: [{ id, epoch: 2, retries: 2, expiresMs: 5000 }],
        }),
        ...settleLines(70, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['overlap'],
    ],
    [
      'overlap: one epoch for two workers',
      [...capturedLines(0), claimLine(10, 'a', 1), startLine(12, 'a', 1), ...run(10, 'b', 1)],
      [resolved],
      ['overlap'],
    ],
    [
      'stale_accepted: a result after a takeover',
      [
        ...capturedLines(0),
        claimLine(10, 'a', 1),
        ...run(120, 'b', 2, 'reschedule'),
        ...settleLines(150, 'a', 1),
      ],
      [{ ...resolved, epoch: 2, retries: 2, actions: ['capture', 'reschedule', 'resolve'] }],
      ['stale_accepted'],
    ],
    [
      'stale_accepted: a renewal after a takeover',
      [
        ...capturedLines(0),
        claimLine(10, 'a', 1),
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
      [...base, ...settleLines(30, 'a', 1)],
      [{ ...resolved, actions: ['capture', 'resolve', 'resolve'] }],
      ['dup_settle'],
    ],
    [
      'dup_settle: a history with two final results',
      [...base, applyTryLine(30, 'a', 1, 'resolve')],
      [{ ...resolved, actions: ['capture', 'resolve', 'resolve'] }],
      ['dup_settle'],
    ],
    [
      'reopened: claimed after its final result',
      [...base, claimLine(200, 'b', 2)],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['reopened'],
    ],
    [
      'stuck: its final result was accepted and is missing',
      base,
      [{ ...resolved, state: 'pending' }],
      ['stuck', 'reopened'],
    ],
    [
      'stuck: never settled',
      capturedLines(0),
      [{ ...resolved, state: 'pending', epoch: 0, retries: 0, actions: [] }],
      ['stuck'],
    ],
    [
      'over_attempts: more runs than allowed',
      [
        ...capturedLines(0),
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
        ...capturedLines(0),
        claimLine(10, 'a', 1),
        startLine(12, 'a', 1),
        claimLine(200, 'b', 2, 1),
        ...settleLines(210, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['count_drift'],
    ],
    [
      'count_drift: a poison letter that was parked too early',
      crashLoop
        .filter(({ t }) => t < 600 || t >= 800)
        .map((line) => (line.e === 'claim.ok' && line.t === 801 ? claimLine(800, 'w4', 3) : line)),
      [{ ...parked, epoch: 3 }],
      ['count_drift'],
    ],
    [
      'wrong_end: a poison letter that was resolved',
      [...capturedLines(0, poison), ...run(10, 'a', 1)],
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
      'history_drift: an accepted result that is not in the history',
      base,
      [{ ...resolved, actions: ['capture'] }],
      ['history_drift'],
    ],
    [
      'history_drift: a reported result that is not in the history',
      [
        ...capturedLines(0),
        claimLine(10, 'a', 1),
        applyTryLine(20, 'a', 1, 'resolve'),
        at(30, 'a', { e: 'settled', id, epoch: 1, as: 'resolved' }),
      ],
      [{ ...resolved, actions: ['capture'] }],
      ['history_drift'],
    ],
    [
      'dup_settle: one result reported, and another written',
      [
        ...capturedLines(0),
        claimLine(10, 'a', 1),
        applyTryLine(20, 'a', 1, 'resolve'),
        at(30, 'a', { e: 'settled', id, epoch: 1, as: 'resolved' }),
        ...run(120, 'b', 2),
      ],
      [{ ...resolved, epoch: 2, retries: 2 }],
      ['dup_settle', 'history_drift'],
    ],
    [
      'odd_errors: a call that failed with an unexpected code',
      [...base, at(50, 'a', { e: 'apply.fail', n: 9, code: 'TypeError: no such thing' })],
      [resolved],
      ['odd_errors'],
    ],
    [
      'unexpected_exits: a process that exited by itself',
      [...base, at(50, 'parent', { e: 'exit', of: 'a', code: 1, signal: null, asked: false })],
      [resolved],
      ['unexpected_exits'],
    ],
    [
      'hung_exits: a process that did not exit on request',
      [...base, at(50, 'parent', { e: 'hung', of: 'a' })],
      [resolved],
      ['hung_exits'],
    ],
  ]

  it.each(cases)('finds %s', (_name, lines, letters, kinds) => {
    expect(violations(verifyLines(lines, letters))).toEqual(kinds)
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
      expect(violations(verifyLines(base, [resolved], { api }))).toEqual(['index_drift'])
  })

  it('counts a late result that was accepted as not refused', () => {
    const lines = [
      ...capturedLines(0),
      claimLine(10, 'a', 1),
      at(13, 'a', { e: 'self.stop', id, epoch: 1, point: 'settle' }),
      ...run(120, 'b', 2),
      at(150, 'parent', { e: 'late.resume', of: 'a', id, epoch: 1 }),
      ...settleLines(160, 'a', 1),
    ]
    const stored: Stored = {
      ...resolved,
      epoch: 2,
      retries: 2,
      actions: ['capture', 'resolve', 'resolve'],
    }
    const findings = verifyLines(lines, [stored])
    expect(violations(findings)).toEqual(['stale_accepted', 'dup_settle'])
    expect(findings.a6).toMatchObject({ pauses: 1, rejected: 0 })
  })
})
