import type { Fact, Line } from './ledger.ts'
import { maxDeliveries, type Plan } from './plan.ts'

/** Violations that must not occur. */
export const violationKinds = [
  /** Sent, and at the end neither processed nor a dead letter. */
  'lost',
  /** Processed or dead, and never sent. */
  'ghost',
  /** Processed or stored with other bytes than were sent. */
  'damaged',
  /** Two dead letters of one message, where repeats can be recognised. */
  'twice_dead',
  /** Dead-lettered with an error that it did not have, or did not have often enough. */
  'early_dead',
  /** Run more often than the policy allows. */
  'over_limit',
  /** Dead-lettered from a delivery that another process had taken over before. */
  'unfenced',
  /**
   * Delivered again after its acknowledgement, or twice with one number and no release in between.
   */
  'revived',
  /** A reply of done or dead for a message that is neither. */
  'early_reply',
  /** Done and removed without the requested reply. */
  'unreplied',
  /** In the mailbox after everything was healed. */
  'stuck',
  /** A process that crashed by itself or did not exit on request. */
  'broken',
] as const
export type ViolationKind = (typeof violationKinds)[number]

export interface Evidence {
  lines: readonly Line[]
  dead: readonly DeadFact[]
  replies: readonly ReplyFact[]
  /** Messages in the mailbox at the end. */
  left: number
  /**
   * The broker deduplicates, counts deliveries and fences, so that these rules have no exceptions.
   */
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
  /** Id of the message that it replies to. */
  id: string
  ok: boolean
}

export interface Findings extends Record<ViolationKind, number> {
  sent: number
  /** Sends with an unknown outcome. */
  unknown: number
  processed: number
  dead: number
  /** Good messages among the dead: their processes died too often. */
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

/** A delivery and the failure count of its message. */
interface Delivery {
  deliveries: number
  failures: number
  t: number
}

/** All ledger facts about one message. */
interface Timeline {
  id: string
  plan?: Plan
  sha?: string
  sent: boolean
  received: Delivery[]
  started: Delivery[]
  processed: string[]
  failed: number
  keeps: { deliveries: number; since: number }[]
  acked: number[]
  /** Possibly released without a run. */
  released: number[]
  dead: DeadFact[]
  replies: ReplyFact[]
}

export function verify(evidence: Evidence): Findings {
  const { lines, left, exact } = evidence
  const timelines = [...buildTimelines(evidence).values()]
  const violations: Record<ViolationKind, string[]> = Object.fromEntries(
    violationKinds.map((kind) => [kind, []]),
  ) as unknown as Record<ViolationKind, string[]>
  for (const timeline of timelines)
    for (const [kind, rule] of Object.entries(rules) as [ViolationKind, Rule][])
      if (rule(timeline, exact)) violations[kind].push(`${kind}: ${describeTimeline(timeline)}`)
  for (const line of lines)
    if (line.e === 'hung' || (line.e === 'exit' && line.code !== null && line.code !== 0))
      violations.broken.push(`broken: ${JSON.stringify(line)}`)
  const counts = Object.fromEntries(violationKinds.map((kind) => [kind, violations[kind].length]))
  return {
    ...(counts as Record<ViolationKind, number>),
    stuck: left,
    ...countOutcomes(timelines),
    ...countFaults(lines),
    examples: violationKinds.flatMap((kind) => violations[kind].slice(0, 3)),
  }
}

type Rule = (timeline: Timeline, exact: boolean) => boolean

const rules: Partial<Record<ViolationKind, Rule>> = {
  lost: ({ sent, processed, dead }) => sent && processed.length === 0 && dead.length === 0,
  ghost: ({ plan, processed, dead }) => !plan && processed.length + dead.length > 0,
  damaged: ({ sha, processed, dead }) =>
    sha !== undefined &&
    [...processed, ...dead.map((one) => one.sha)].some((other) => other !== sha),
  twice_dead: ({ dead }, exact) =>
    dead.filter(({ place }) => exact || place === 'letters').length > 1,
  early_dead: (timeline) => timeline.dead.some((dead) => !isDue(timeline, dead)),
  over_limit: ({ started, released }, exact) =>
    started.some(exceedsLimit) ||
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

/** Whether a dead letter has a valid cause: enough deliveries, enough failures, or invalid JSON. */
function isDue({ plan, failed, received }: Timeline, { errorType, deliveries }: DeadFact): boolean {
  if (errorType === 'MaxDeliveriesExceeded')
    return received.some((one) => one.deliveries === deliveries && exceedsLimit(one))
  if (errorType === 'UNDECODABLE') return plan?.kind === 'garbled'
  return failed >= maxDeliveries
}

/**
 * More deliveries than allowed ended without a reported failure: each may have killed its process.
 */
function exceedsLimit({
  deliveries,
  failures,
}: Pick<Delivery, 'deliveries' | 'failures'>): boolean {
  return deliveries - failures > maxDeliveries
}

function buildTimelines({ lines, dead, replies }: Evidence): Map<string, Timeline> {
  const timelines = new Map<string, Timeline>()
  const of = (id: string): Timeline => {
    const timeline = timelines.get(id) ?? emptyTimeline(id)
    timelines.set(id, timeline)
    return timeline
  }
  for (const line of lines) applyLine(line, of)
  for (const one of dead) of(one.id).dead.push(one)
  for (const one of replies) of(one.id).replies.push(one)
  return timelines
}

function emptyTimeline(id: string): Timeline {
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

function applyLine(line: Line, of: (id: string) => Timeline): void {
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

type OutcomeKey = 'sent' | 'unknown' | 'processed' | 'dead' | 'dead_by_kills' | 'duplicates'

function countOutcomes(timelines: readonly Timeline[]): Pick<Findings, OutcomeKey> {
  const count = (matches: (timeline: Timeline) => boolean): number =>
    timelines.filter(matches).length
  return {
    sent: count(({ sent }) => sent),
    unknown: count(({ sent, plan }) => plan !== undefined && !sent),
    processed: count(({ processed }) => processed.length > 0),
    dead: count(({ dead }) => dead.length > 0),
    dead_by_kills: count(({ plan, dead }) => plan?.kind === 'good' && dead.length > 0),
    duplicates: count(({ processed }) => processed.length > 1),
  }
}

type FaultKey = Exclude<keyof Findings, ViolationKind | OutcomeKey | 'examples'>

function countFaults(lines: readonly Line[]): Pick<Findings, FaultKey> {
  const all = <E extends Fact['e']>(e: E): Extract<Line, { e: E }>[] =>
    lines.filter((line): line is Extract<Line, { e: E }> => line.e === e)
  const failpoints: Record<string, number> = {}
  for (const { act, point } of all('fault'))
    failpoints[`${act} ${point}`] = (failpoints[`${act} ${point}`] ?? 0) + 1
  const kills = all('kill').length
  const faults = (wanted: string): number => all('fault').filter(({ act }) => act === wanted).length
  const serverFaults = all('server.down')
  return {
    kills,
    self_kills: Math.max(
      0,
      all('exit').filter(({ signal }) => signal === 'SIGKILL').length - kills,
    ),
    pauses: all('pause').length + faults('stop'),
    restarts: all('restart').length + faults('term'),
    server_restarts: serverFaults.filter(({ kind }) => kind !== 'freeze').length,
    server_freezes: serverFaults.filter(({ kind }) => kind === 'freeze').length,
    cuts: all('cut').length,
    failpoints,
  }
}

function describeTimeline(timeline: Timeline): string {
  const { id, plan, received, started, failed, acked, released, dead, replies } = timeline
  const short = (all: readonly Delivery[]): string[] =>
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
