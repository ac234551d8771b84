import type { Action } from '../../src/letter/letter.ts'
import type { ApplyResult } from '../../src/store.ts'
import type { ChangeFact, ClaimFact, Line, LineOf, ClockReading } from './ledger.ts'
import type { Plan } from './plan.ts'

/** All ledger facts about one letter. */
export interface Timeline {
  id: string
  plan: Plan | undefined
  sha: string | undefined
  /** Acknowledged to the producer. */
  captured: boolean
  claims: Claimed[]
  renewals: { epoch: number; kept: boolean; since: ClockReading; t: number }[]
  settles: Settle[]
  starts: { epoch: number; t: number; p: string }[]
  ends: { epoch: number; ok: boolean; aborted: boolean; t: number }[]
  lost: { epoch: number; t: number; p: string }[]
  /** Results that a queue reported to its observers. */
  reported: { epoch: number; action: Action }[]
}

export interface Claimed extends ClaimFact {
  p: string
  /** Clocks just before the request; `t` is just after the answer. */
  since: ClockReading
  t: number
}

/** An attempt to write a result. Unknown: the ledger has no outcome. */
export interface Settle extends ChangeFact {
  p: string
  result: ApplyResult | 'unknown'
  tried: ClockReading
  /** Time of the answer; Infinity if there was none. */
  t: number
}

export const terminalActions = ['resolve', 'exhaust', 'park']

/** The action that an event reports. */
const actionOf = {
  resolved: 'resolve',
  rescheduled: 'reschedule',
  exhausted: 'exhaust',
  parked: 'park',
  released: 'release',
} as const satisfies Record<string, Action>

export type ReportedEvent = keyof typeof actionOf

export function buildTimelines(lines: readonly Line[]): Map<string, Timeline> {
  const timelines = new Map<string, Timeline>()
  const of = (id: string): Timeline => {
    let timeline = timelines.get(id)
    if (!timeline) timelines.set(id, (timeline = emptyTimeline(id)))
    return timeline
  }
  const answers = answersOf(lines)
  for (const line of lines) applyLine(line, of, answers)
  return timelines
}

function emptyTimeline(id: string): Timeline {
  return {
    id,
    plan: undefined,
    sha: undefined,
    captured: false,
    claims: [],
    renewals: [],
    settles: [],
    starts: [],
    ends: [],
    lost: [],
    reported: [],
  }
}

type Answers = Map<string, LineOf<'apply.ok'>>

function answersOf(lines: readonly Line[]): Answers {
  const answers: Answers = new Map()
  for (const line of lines) if (line.e === 'apply.ok') answers.set(`${line.p} ${line.n}`, line)
  return answers
}

function applyLine(line: Line, of: (id: string) => Timeline, answers: Answers): void {
  const { t, w, p } = line
  switch (line.e) {
    case 'capture.try':
      Object.assign(of(line.id), { plan: line.plan, sha: line.sha })
      return
    case 'capture.ok':
      of(line.id).captured = true
      return
    case 'claim.ok':
      for (const claim of line.claims)
        of(claim.id).claims.push({ ...claim, p, t, since: line.since })
      return
    case 'renew.ok':
      for (const { id, epoch, kept } of line.renewals)
        of(id).renewals.push({ epoch, kept, t, since: line.since })
      return
    case 'apply.try': {
      const answer = answers.get(`${p} ${line.n}`)
      for (const [index, change] of line.changes.entries()) {
        const result = answer?.results[index] ?? 'unknown'
        of(change.id).settles.push({
          ...change,
          p,
          tried: { t, w },
          result,
          t: answer?.t ?? Infinity,
        })
      }
      return
    }
    case 'run.start':
      of(line.id).starts.push({ epoch: line.epoch, t, p })
      return
    case 'run.end':
      of(line.id).ends.push({ epoch: line.epoch, ok: line.ok, aborted: line.aborted, t })
      return
    case 'settled':
      of(line.id).reported.push({ epoch: line.epoch, action: actionOf[line.as] })
      return
    case 'lease.lost':
      of(line.id).lost.push({ epoch: line.epoch, t, p })
      return
    default:
  }
}
