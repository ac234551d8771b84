import type { Fact, Line } from './ledger.ts'
import { maxDeliveries, type Plan } from './plan.ts'

/** What must not be found. */
export const violationKinds = [
  /** Sent, and at the end neither processed nor a dead letter. */
  'lost',
  /** Processed or dead, and never sent. */
  'ghost',
  /** Processed or kept with other bytes than were sent. */
  'damaged',
  /** Two dead letters of one message, where repeats can be recognised. */
  'twice_dead',
  /** Dead for an error that it did not have, or had too seldom. */
  'early_dead',
  /** Run more often than the policy allows. */
  'over_limit',
  /** Dead-lettered from a delivery after which somebody else had received the message already. */
  'unfenced',
  /** Delivered again after its acknowledgement, or two deliveries with one number, of which none was given back untried. */
  'revived',
  /** A reply that says done or dead before it was. */
  'early_reply',
  /** Done and gone, without the reply that was asked for. */
  'unreplied',
  /** In the mailbox after everything was healed and had its time. */
  'stuck',
  /** A process that broke down or did not end when asked to. */
  'broken',
] as const
export type ViolationKind = (typeof violationKinds)[number]

export interface Evidence {
  lines: readonly Line[]
  dead: readonly DeadFact[]
  replies: readonly ReplyFact[]
  /** Messages in the mailbox at the end. */
  left: number
  /** The broker knows repeats, counts deliveries and fences by itself, so that these rules hold without exception. */
  exact: boolean
}

export interface DeadFact {
  id: string
  place: 'mailbox' | 'letters'
  sha: string
  errorType: string
  deliveries: number
}

export interface ReplyFact {
  /** What it is the reply to. */
  id: string
  ok: boolean
}

export interface Judgement extends Record<ViolationKind, number> {
  sent: number
  /** Nobody knows whether they were sent. */
  unknown: number
  processed: number
  dead: number
  /** Good ones among the dead: the processes that had them died too often. */
  dead_by_kills: number
  /** Processed more than once, which is allowed. */
  duplicates: number
  kills: number
  self_kills: number
  pauses: number
  restarts: number
  server_restarts: number
  server_freezes: number
  cuts: number
  failpoints: Record<string, number>
  examples: string[]
}

/** A delivery, and the failures that it came with. */
interface Seen {
  deliveries: number
  failures: number
  t: number
}

/** All that the ledgers say of one message. */
interface Life {
  id: string
  plan?: Plan
  sha?: string
  sent: boolean
  received: Seen[]
  started: Seen[]
  processed: string[]
  failed: number
  keeps: { deliveries: number; since: number }[]
  acked: number[]
  /** Perhaps given back untried. */
  released: number[]
  dead: DeadFact[]
  replies: ReplyFact[]
}

export function judge(evidence: Evidence): Judgement {
  const { lines, left, exact } = evidence
  const lives = [...livesOf(evidence).values()]
  const found: Record<ViolationKind, string[]> = Object.fromEntries(
    violationKinds.map((kind) => [kind, []]),
  ) as unknown as Record<ViolationKind, string[]>
  for (const life of lives)
    for (const [kind, rule] of Object.entries(rules) as [ViolationKind, Rule][])
      if (rule(life, exact)) found[kind].push(`${kind}: ${told(life)}`)
  for (const line of lines)
    if (line.e === 'hung' || (line.e === 'exit' && line.code !== null && line.code !== 0))
      found.broken.push(`broken: ${JSON.stringify(line)}`)
  const counts = Object.fromEntries(violationKinds.map((kind) => [kind, found[kind].length]))
  return {
    ...(counts as Record<ViolationKind, number>),
    stuck: left,
    ...ended(lives),
    ...done(lines),
    examples: violationKinds.flatMap((kind) => found[kind].slice(0, 3)),
  }
}

type Rule = (life: Life, exact: boolean) => boolean

const rules: Partial<Record<ViolationKind, Rule>> = {
  lost: ({ sent, processed, dead }) => sent && processed.length === 0 && dead.length === 0,
  ghost: ({ plan, processed, dead }) => !plan && processed.length + dead.length > 0,
  damaged: ({ sha, processed, dead }) =>
    sha !== undefined &&
    [...processed, ...dead.map((one) => one.sha)].some((other) => other !== sha),
  twice_dead: ({ dead }, exact) =>
    dead.filter(({ place }) => exact || place === 'letters').length > 1,
  early_dead: (life) => life.dead.some((dead) => !isDue(life, dead)),
  over_limit: ({ started, released }, exact) =>
    started.some(isTooMuch) ||
    (exact &&
      started.length - released.length - Math.max(0, ...started.map(({ failures }) => failures)) >
        maxDeliveries),
  unfenced: ({ keeps, received }, exact) =>
    exact &&
    keeps.some((keep) =>
      received.some((later) => later.deliveries > keep.deliveries && later.t < keep.since),
    ),
  revived: ({ received, acked, released }, exact) =>
    exact &&
    received.some(
      ({ deliveries }) =>
        deliveries > Math.min(...acked) ||
        received.filter((other) => other.deliveries === deliveries).length >
          1 + released.filter((other) => other === deliveries).length,
    ),
  early_reply: ({ replies, processed, dead }) =>
    replies.some(({ ok }) => (ok ? processed.length === 0 : dead.length === 0)),
  unreplied: ({ plan, sent, processed, dead, replies }) =>
    sent && plan?.replies === true && processed.length > 0 && dead.length + replies.length === 0,
}

/** Whether a dead letter says something that can be: enough deliveries, enough failures, or bytes that are no JSON. */
function isDue({ plan, failed, received }: Life, { errorType, deliveries }: DeadFact): boolean {
  if (errorType === 'MaxDeliveriesExceeded')
    return received.some((one) => one.deliveries === deliveries && isTooMuch(one))
  if (errorType === 'UNDECODABLE') return plan?.kind === 'garbled'
  return failed >= maxDeliveries
}

/** More deliveries than allowed have ended without a failure that was told, so each may have ended its process. */
function isTooMuch({ deliveries, failures }: Pick<Seen, 'deliveries' | 'failures'>): boolean {
  return deliveries - failures > maxDeliveries
}

function livesOf({ lines, dead, replies }: Evidence): Map<string, Life> {
  const lives = new Map<string, Life>()
  const of = (id: string): Life => {
    const life = lives.get(id) ?? emptyLife(id)
    lives.set(id, life)
    return life
  }
  for (const line of lines) tell(line, of)
  for (const one of dead) of(one.id).dead.push(one)
  for (const one of replies) of(one.id).replies.push(one)
  return lives
}

function emptyLife(id: string): Life {
  return {
    id,
    sent: false,
    received: [],
    started: [],
    processed: [],
    failed: 0,
    keeps: [],
    acked: [],
    released: [],
    dead: [],
    replies: [],
  }
}

function tell(line: Line, of: (id: string) => Life): void {
  switch (line.e) {
    case 'send.try':
      Object.assign(of(line.id), { plan: line.plan, sha: line.sha })
      return
    case 'send.ok':
      of(line.id).sent = true
      return
    case 'received':
      of(line.id).received.push(line)
      return
    case 'started':
      of(line.id).started.push(line)
      return
    case 'processed':
      of(line.id).processed.push(line.sha)
      return
    case 'failed':
      of(line.id).failed++
      return
    case 'keep.try':
      of(line.id).keeps.push({ deliveries: line.deliveries, since: line.since ?? line.t })
      return
    case 'acked':
      of(line.id).acked.push(line.deliveries)
      return
    case 'release.try':
      of(line.id).released.push(line.deliveries)
      return
    default:
  }
}

type Ended = 'sent' | 'unknown' | 'processed' | 'dead' | 'dead_by_kills' | 'duplicates'

function ended(lives: readonly Life[]): Pick<Judgement, Ended> {
  const count = (matches: (life: Life) => boolean): number => lives.filter(matches).length
  return {
    sent: count(({ sent }) => sent),
    unknown: count(({ sent, plan }) => plan !== undefined && !sent),
    processed: count(({ processed }) => processed.length > 0),
    dead: count(({ dead }) => dead.length > 0),
    dead_by_kills: count(({ plan, dead }) => plan?.kind === 'good' && dead.length > 0),
    duplicates: count(({ processed }) => processed.length > 1),
  }
}

type Done = Exclude<keyof Judgement, ViolationKind | Ended | 'examples'>

function done(lines: readonly Line[]): Pick<Judgement, Done> {
  const all = <E extends Fact['e']>(e: E): Extract<Line, { e: E }>[] =>
    lines.filter((line): line is Extract<Line, { e: E }> => line.e === e)
  const failpoints: Record<string, number> = {}
  for (const { act, point } of all('fault'))
    failpoints[`${act} ${point}`] = (failpoints[`${act} ${point}`] ?? 0) + 1
  const kills = all('kill').length
  const faults = (wanted: string): number => all('fault').filter(({ act }) => act === wanted).length
  const blows = all('server.down')
  return {
    kills,
    self_kills: Math.max(
      0,
      all('exit').filter(({ signal }) => signal === 'SIGKILL').length - kills,
    ),
    pauses: all('pause').length + faults('stop'),
    restarts: all('restart').length + faults('term'),
    server_restarts: blows.filter(({ kind }) => kind !== 'freeze').length,
    server_freezes: blows.filter(({ kind }) => kind === 'freeze').length,
    cuts: all('cut').length,
    failpoints,
  }
}

function told(life: Life): string {
  const { id, plan, received, started, failed, acked, released, dead, replies } = life
  const short = (all: readonly Seen[]): string[] =>
    all.map(({ deliveries, failures }) => `${deliveries}/${failures}`)
  const facts = {
    received: short(received),
    started: short(started),
    failed,
    acked,
    released,
    dead,
    replies,
    plan,
  }
  return `${id} ${JSON.stringify(facts)}`
}
