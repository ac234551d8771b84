import { isDeepStrictEqual } from 'node:util'
import type { State } from '../../src/letter/letter.ts'
import {
  countLatePauses,
  measureRecoveries,
  countReruns,
  serverFaults,
  countStaleRejections,
  countUnknown,
  type LatePauses,
  type Unknown,
} from './figures.ts'
import type { Line, LineOf } from './ledger.ts'
import { buildTimelines, type Timeline } from './timeline.ts'
import { rules, type Stored } from './rules.ts'
import type { CutKind } from './storm.ts'

/** The store after the run, as read by one reader. */
export interface Dump {
  letters: Stored[]
  /** Letters by state: counted row by row, or from the counters of the store. */
  byState: Partial<Record<State, number>>
  byQueue: Record<string, number>
  /** Problems that the reader found, such as a failed integrity check. */
  problems: string[]
}

export interface Evidence {
  lines: readonly Line[]
  /** Read without the product. */
  raw: Dump
  /** Read through the product. */
  api: Dump
  leaseMs: number
}

export const violationKinds = [
  'lost',
  'ghost',
  'overlap',
  'stale_accepted',
  'dup_settle',
  'stuck',
  'over_attempts',
  'reopened',
  'index_drift',
  'count_drift',
  'wrong_end',
  'history_drift',
  'odd_errors',
  'unexpected_exits',
  'hung_exits',
] as const
export type ViolationKind = (typeof violationKinds)[number]

export interface Figures {
  kills: number
  pauses: number
  restarts: number
  /** Crashes and freezes of the server. */
  server_restarts: number
  server_freezes: number
  cuts: Record<CutKind, number>
  /** Failed attempts of starting processes to open the store. */
  failed_opens: number
  /** Captures, settles and housekeeping that rejected. */
  failed_calls: number
  self_kills: number
  captured: number
  unknown: Unknown
  resolved: number
  exhausted: number
  parked: number
  claims: number
  runs: number
  recovered: number
  stale_rejected: number
  duplicate_runs: number
  max_recovery_ms: number
  a6: LatePauses
}

export interface Findings extends Record<ViolationKind, number>, Figures {
  examples: string[]
}

const maxExamples = 40

/** Compares the ledgers with the store. Every violation counts once per letter. */
export function verify(evidence: Evidence): Findings {
  const timelines = buildTimelines(evidence.lines)
  const stored = new Map(evidence.raw.letters.map((letter) => [letter.id, letter]))
  for (const id of stored.keys()) if (!timelines.has(id)) timelines.set(id, unknownTimeline(id))
  const violations = new Map<ViolationKind, string[]>(violationKinds.map((kind) => [kind, []]))
  for (const [kind, rule] of Object.entries(rules) as [
    keyof typeof rules,
    (typeof rules)[keyof typeof rules],
  ][])
    for (const timeline of timelines.values()) {
      const what = rule(timeline, stored.get(timeline.id), evidence)
      if (what !== undefined) violations.get(kind)!.push(`${timeline.id} ${what}`)
    }
  violations.get('index_drift')!.push(...findIndexDrift(evidence))
  violations.get('odd_errors')!.push(...findOddErrors(evidence.lines))
  violations.get('unexpected_exits')!.push(...findUnexpectedExits(evidence.lines))
  violations.get('hung_exits')!.push(...findHungExits(evidence.lines))
  const counts = Object.fromEntries(
    [...violations].map(([kind, examplesOfKind]) => [kind, examplesOfKind.length]),
  )
  const examples = [...violations].flatMap(([kind, examplesOfKind]) =>
    examplesOfKind.slice(0, 5).map((what) => `${kind}: ${what}`),
  )
  return {
    ...(counts as Record<ViolationKind, number>),
    ...figures(evidence, [...timelines.values()]),
    examples: examples.slice(0, maxExamples),
  }
}

function unknownTimeline(id: string): Timeline {
  return buildTimelines([{ e: 'lease.lost', id, epoch: 0, t: 0, w: 0, p: '' }]).get(id)!
}

/** The rows, the counters of the store, and the answers of the product must agree. */
function findIndexDrift({ raw, api }: Evidence): string[] {
  const drift = [...raw.problems, ...api.problems]
  const countInState = (letters: Stored[], state: string): number =>
    letters.filter((letter) => letter.state === state).length
  for (const state of new Set([...Object.keys(raw.byState), ...Object.keys(api.byState)])) {
    const views = [countInState(raw.letters, state), countInState(api.letters, state)]
    views.push(raw.byState[state as State] ?? 0, api.byState[state as State] ?? 0)
    if (new Set(views).size > 1)
      drift.push(`${state}: rows, listing and counters have ${views.join(', ')}`)
  }
  for (const queue of new Set([...Object.keys(raw.byQueue), ...Object.keys(api.byQueue)]))
    if (raw.byQueue[queue] !== api.byQueue[queue])
      drift.push(`queue ${queue}: ${raw.byQueue[queue]} rows, counted ${api.byQueue[queue]}`)
  const listed = new Map(api.letters.map((letter) => [letter.id, letter]))
  if (listed.size !== api.letters.length) drift.push('the listing repeats letters')
  for (const letter of raw.letters)
    if (!isDeepStrictEqual(letter, listed.get(letter.id)))
      drift.push(`${letter.id} reads differently through the product`)
  if (listed.size !== raw.letters.length)
    drift.push(`${raw.letters.length} rows, ${listed.size} letters in the listing`)
  return drift
}

/** A process may exit on request or because a letter killed it. All other exits are our crashes. */
function findUnexpectedExits(lines: readonly Line[]): string[] {
  const poisoned = new Set(lines.filter(({ e }) => e === 'self.kill').map(({ p }) => p))
  return lines
    .filter(
      (line): line is LineOf<'exit'> => line.e === 'exit' && !line.asked && !poisoned.has(line.of),
    )
    .map(({ of, code, signal }) => `${of} exited by itself with ${signal ?? code}`)
}

/** Once all faults are over, a process must exit on request. */
function findHungExits(lines: readonly Line[]): string[] {
  return lines.flatMap((line) =>
    line.e === 'hung' ? [`${line.of} did not exit on request and was killed`] : [],
  )
}

/** Expected error codes of a store that is unavailable; all others come from a bug of ours. */
const expectedCodes = ['STORE_UNAVAILABLE', 'CLOSED']

function findOddErrors(lines: readonly Line[]): string[] {
  const odd = lines.flatMap((line) =>
    'code' in line && typeof line.code === 'string' && !expectedCodes.includes(line.code)
      ? [`${line.p} ${line.e}: ${line.e === 'error' ? `${line.during}: ${line.error}` : line.code}`]
      : [],
  )
  return [...new Set(odd)]
}

function figures({ lines, raw }: Evidence, timelines: Timeline[]): Figures {
  const count = (event: Line['e']): number => lines.filter(({ e }) => e === event).length
  const inState = (state: State): number =>
    raw.letters.filter((letter) => letter.state === state).length
  const { recovered, maxMs } = measureRecoveries(timelines, lines)
  return {
    kills: count('kill'),
    pauses: count('pause'),
    restarts: count('restart'),
    ...serverFaults(lines),
    failed_opens: count('open.fail'),
    failed_calls: count('capture.fail') + count('apply.fail') + count('error'),
    self_kills: count('self.kill'),
    captured: timelines.filter(({ captured }) => captured).length,
    unknown: countUnknown(timelines, raw.letters),
    resolved: inState('resolved'),
    exhausted: inState('exhausted'),
    parked: inState('parked'),
    claims: timelines.reduce((sum, { claims }) => sum + claims.length, 0),
    runs: timelines.reduce((sum, { starts }) => sum + starts.length, 0),
    recovered,
    stale_rejected: countStaleRejections(timelines),
    duplicate_runs: countReruns(timelines),
    max_recovery_ms: Math.round(maxMs),
    a6: countLatePauses(lines, timelines),
  }
}
