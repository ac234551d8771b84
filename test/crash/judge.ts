import type { State } from '../../src/letter/letter.ts'
import {
  latePauses,
  recoveries,
  reruns,
  serverFaults,
  staleRejections,
  unknowns,
  type LatePauses,
  type Unknown,
} from './figures.ts'
import type { Line, LineOf } from './ledger.ts'
import { livesOf, type Life } from './life.ts'
import { rules, type Stored } from './rules.ts'
import type { CutKind } from './storm.ts'

/** The store after the run, as read by one way in. */
export interface Dump {
  letters: Stored[]
  /** Letters by state: counted row by row, or as the store keeps count. */
  byState: Partial<Record<State, number>>
  byQueue: Record<string, number>
  /** What the way in found wrong by itself, such as a failed integrity check. */
  problems: string[]
}

export interface Evidence {
  lines: readonly Line[]
  /** As it lies there. */
  raw: Dump
  /** Through the product. */
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
  /** Sudden ends of the server, and how often it stood still. */
  server_restarts: number
  server_freezes: number
  cuts: Record<CutKind, number>
  /** How often a process found the store away when it started. */
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

export interface Judgement extends Record<ViolationKind, number>, Figures {
  examples: string[]
}

const maxExamples = 40

/** What the ledgers and the store, taken together, say about the run. Every violation counts once per letter. */
export function judge(evidence: Evidence): Judgement {
  const lives = livesOf(evidence.lines)
  const stored = new Map(evidence.raw.letters.map((letter) => [letter.id, letter]))
  for (const id of stored.keys()) if (!lives.has(id)) lives.set(id, unknownLife(id))
  const found = new Map<ViolationKind, string[]>(violationKinds.map((kind) => [kind, []]))
  for (const [kind, rule] of Object.entries(rules) as [
    keyof typeof rules,
    (typeof rules)[keyof typeof rules],
  ][])
    for (const life of lives.values()) {
      const what = rule(life, stored.get(life.id), evidence)
      if (what !== undefined) found.get(kind)!.push(`${life.id} ${what}`)
    }
  found.get('index_drift')!.push(...indexDrift(evidence))
  found.get('odd_errors')!.push(...oddErrors(evidence.lines))
  found.get('unexpected_exits')!.push(...unexpectedExits(evidence.lines))
  found.get('hung_exits')!.push(...hungExits(evidence.lines))
  const counts = Object.fromEntries([...found].map(([kind, those]) => [kind, those.length]))
  const examples = [...found].flatMap(([kind, those]) =>
    those.slice(0, 5).map((what) => `${kind}: ${what}`),
  )
  return {
    ...(counts as Record<ViolationKind, number>),
    ...figures(evidence, [...lives.values()]),
    examples: examples.slice(0, maxExamples),
  }
}

function unknownLife(id: string): Life {
  return livesOf([{ e: 'lease.lost', id, epoch: 0, t: 0, w: 0, p: '' }]).get(id)!
}

/** The rows, the counts that the store keeps, and the answers of the product must tell the same story. */
function indexDrift({ raw, api }: Evidence): string[] {
  const drift = [...raw.problems, ...api.problems]
  const counted = (letters: Stored[], state: string): number =>
    letters.filter((letter) => letter.state === state).length
  for (const state of new Set([...Object.keys(raw.byState), ...Object.keys(api.byState)])) {
    const views = [counted(raw.letters, state), counted(api.letters, state)]
    views.push(raw.byState[state as State] ?? 0, api.byState[state as State] ?? 0)
    if (new Set(views).size > 1)
      drift.push(`${state}: rows, listing, counts say ${views.join(', ')}`)
  }
  for (const queue of new Set([...Object.keys(raw.byQueue), ...Object.keys(api.byQueue)]))
    if (raw.byQueue[queue] !== api.byQueue[queue])
      drift.push(`queue ${queue}: ${raw.byQueue[queue]} rows, counted ${api.byQueue[queue]}`)
  const listed = new Map(api.letters.map((letter) => [letter.id, letter]))
  if (listed.size !== api.letters.length) drift.push('the listing repeats letters')
  for (const letter of raw.letters)
    if (JSON.stringify(letter) !== JSON.stringify(listed.get(letter.id)))
      drift.push(`${letter.id} reads differently through the product`)
  if (listed.size !== raw.letters.length)
    drift.push(`${raw.letters.length} rows, ${listed.size} letters in the listing`)
  return drift
}

/** A process may end because it was told to, or because a letter killed it. Everything else is a crash of ours. */
function unexpectedExits(lines: readonly Line[]): string[] {
  const poisoned = new Set(lines.filter(({ e }) => e === 'self.kill').map(({ p }) => p))
  return lines
    .filter(
      (line): line is LineOf<'exit'> => line.e === 'exit' && !line.asked && !poisoned.has(line.of),
    )
    .map(({ of, code, signal }) => `${of} ended by itself with ${signal ?? code}`)
}

/** When everything works again, a process that is asked to end must be able to. */
function hungExits(lines: readonly Line[]): string[] {
  return lines.flatMap((line) =>
    line.e === 'hung' ? [`${line.of} was asked to end and had to be killed`] : [],
  )
}

/** What a store may answer when it cannot do what it is asked to; anything else comes from a mistake of ours. */
const expectedCodes = ['STORE_UNAVAILABLE', 'CLOSED']

function oddErrors(lines: readonly Line[]): string[] {
  const odd = lines.flatMap((line) =>
    'code' in line && typeof line.code === 'string' && !expectedCodes.includes(line.code)
      ? [`${line.p} ${line.e}: ${line.e === 'error' ? `${line.during}: ${line.error}` : line.code}`]
      : [],
  )
  return [...new Set(odd)]
}

function figures({ lines, raw }: Evidence, lives: Life[]): Figures {
  const count = (event: Line['e']): number => lines.filter(({ e }) => e === event).length
  const inState = (state: State): number =>
    raw.letters.filter((letter) => letter.state === state).length
  const { recovered, maxMs } = recoveries(lives, lines)
  return {
    kills: count('kill'),
    pauses: count('pause'),
    restarts: count('restart'),
    ...serverFaults(lines),
    failed_opens: count('open.fail'),
    failed_calls: count('capture.fail') + count('apply.fail') + count('error'),
    self_kills: count('self.kill'),
    captured: lives.filter(({ captured }) => captured).length,
    unknown: unknowns(lives, raw.letters),
    resolved: inState('resolved'),
    exhausted: inState('exhausted'),
    parked: inState('parked'),
    claims: lives.reduce((sum, { claims }) => sum + claims.length, 0),
    runs: lives.reduce((sum, { starts }) => sum + starts.length, 0),
    recovered,
    stale_rejected: staleRejections(lives),
    duplicate_runs: reruns(lives),
    max_recovery_ms: Math.round(maxMs),
    a6: latePauses(lines, lives),
  }
}
