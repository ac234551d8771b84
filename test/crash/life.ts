import type { Action } from '../../src/letter/letter.ts'
import type { ApplyResult } from '../../src/store.ts'
import type { ChangeFact, ClaimFact, Line, LineOf, Moment } from './ledger.ts'
import type { Plan } from './plan.ts'

/** All that the ledgers say of one letter. */
export interface Life {
  id: string
  plan: Plan | undefined
  sha: string | undefined
  /** Acknowledged to the producer. */
  captured: boolean
  claims: Claimed[]
  renewals: { epoch: number; kept: boolean; since: Moment; t: number }[]
  settles: Settle[]
  starts: { epoch: number; t: number; p: string }[]
  ends: { epoch: number; ok: boolean; aborted: boolean; t: number }[]
  lost: { epoch: number; t: number; p: string }[]
  /** Results that a queue told its observers of. */
  told: { epoch: number; action: Action }[]
}

export interface Claimed extends ClaimFact {
  p: string
  /** Just before the claim was asked for, and just after its answer came. */
  since: Moment
  t: number
}

/** An attempt to write a result. Unknown: nothing in the ledger says what became of it. */
export interface Settle extends ChangeFact {
  p: string
  result: ApplyResult | 'unknown'
  tried: Moment
  /** When the answer came; Infinity if none did. */
  t: number
}

export const terminalActions = ['resolve', 'exhaust', 'park']

/** What was done when an event of this name is told. */
const actionOf = {
  resolved: 'resolve',
  rescheduled: 'reschedule',
  exhausted: 'exhaust',
  parked: 'park',
  released: 'release',
} as const satisfies Record<string, Action>

export type Told = keyof typeof actionOf

export function livesOf(lines: readonly Line[]): Map<string, Life> {
  const lives = new Map<string, Life>()
  const of = (id: string): Life => {
    let life = lives.get(id)
    if (!life) lives.set(id, (life = emptyLife(id)))
    return life
  }
  const answers = answersOf(lines)
  for (const line of lines) tell(line, of, answers)
  return lives
}

function emptyLife(id: string): Life {
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
    told: [],
  }
}

type Answers = Map<string, LineOf<'apply.ok'>>

function answersOf(lines: readonly Line[]): Answers {
  const answers: Answers = new Map()
  for (const line of lines) if (line.e === 'apply.ok') answers.set(`${line.p} ${line.n}`, line)
  return answers
}

function tell(line: Line, of: (id: string) => Life, answers: Answers): void {
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
      of(line.id).told.push({ epoch: line.epoch, action: actionOf[line.as] })
      return
    case 'lease.lost':
      of(line.id).lost.push({ epoch: line.epoch, t, p })
      return
    default:
  }
}
