import type { Line, LineOf } from './ledger.ts'
import type { Timeline } from './timeline.ts'
import type { Stored } from './rules.ts'
import { cutKinds, type CutKind } from './storm.ts'

/** Targeted pauses: a worker was stopped until another one had settled its letter, then resumed. */
export interface LatePauses {
  pauses: number
  /** Pauses whose late result was refused. */
  rejected: number
  /** Pauses whose run waited for its signal before it returned. */
  waited: number
  /** Waiting runs whose signal was aborted. */
  aborted: number
  /** Resumed, but the process died before its result, or the outcome of the result is unknown. */
  unanswered: number
}

export function countLatePauses(
  lines: readonly Line[],
  timelines: readonly Timeline[],
): LatePauses {
  const byId = new Map(timelines.map((timeline) => [timeline.id, timeline]))
  const stops = lines.filter((line): line is LineOf<'self.stop'> => line.e === 'self.stop')
  const totals: LatePauses = { pauses: 0, rejected: 0, waited: 0, aborted: 0, unanswered: 0 }
  for (const line of lines) {
    if (line.e !== 'late.resume') continue
    const timeline = byId.get(line.id)
    const same = ({ epoch }: { epoch?: number }): boolean => epoch === line.epoch
    const accepted =
      timeline?.settles.some((settle) => same(settle) && settle.result === 'written') ?? false
    const rejected = timeline?.lost.some((lost) => same(lost) && lost.p === line.of) ?? false
    const unknown = timeline?.settles.some((settle) => same(settle) && settle.result === 'unknown')
    if (!accepted && !rejected && (unknown || hasExited(line.of, lines))) {
      totals.unanswered++
      continue
    }
    totals.pauses++
    if (!accepted && rejected) totals.rejected++
    const point = stops.find((stop) => stop.id === line.id && same(stop))?.point
    if (point !== 'signal') continue
    totals.waited++
    if (timeline?.ends.some((end) => same(end) && end.aborted)) totals.aborted++
  }
  return totals
}

/** Calls without an answer, and how many of them took effect. */
export interface Unknown {
  captures: number
  captures_kept: number
  settles: number
}

/** Captures are counted by letter, settles one by one. */
export function countUnknown(timelines: readonly Timeline[], stored: readonly Stored[]): Unknown {
  const kept = new Set(stored.map(({ id }) => id))
  const captures = timelines.filter(({ sha, captured }) => sha !== undefined && !captured)
  return {
    captures: captures.length,
    captures_kept: captures.filter(({ id }) => kept.has(id)).length,
    settles: timelines.reduce(
      (sum, { settles }) => sum + settles.filter(({ result }) => result === 'unknown').length,
      0,
    ),
  }
}

export function serverFaults(lines: readonly Line[]): {
  server_restarts: number
  server_freezes: number
  cuts: Record<CutKind, number>
} {
  const cuts = Object.fromEntries(cutKinds.map((kind) => [kind, 0])) as Record<CutKind, number>
  for (const line of lines) if (line.e === 'cut') cuts[line.kind] += line.proxies.length
  const faults = lines.filter((line) => line.e === 'server.down').map(({ kind }) => kind)
  const freezes = faults.filter((kind) => kind === 'freeze').length
  return { server_restarts: faults.length - freezes, server_freezes: freezes, cuts }
}

/** Whether the process exited before the end of the run. */
function hasExited(name: string, lines: readonly Line[]): boolean {
  return (
    lines.some((line) => line.p === name && line.e === 'self.kill') ||
    lines.some(
      (line) => 'of' in line && line.of === name && (line.e === 'kill' || line.e === 'exit'),
    )
  )
}

/**
 * Letters that were taken over from a worker that stopped responding, and the longest time from its
 * death or pause to the claim by another.
 */
export function measureRecoveries(
  timelines: readonly Timeline[],
  lines: readonly Line[],
): { recovered: number; maxMs: number } {
  const faults = faultsOf(lines)
  let recovered = 0
  let maxMs = 0
  for (const timeline of timelines) {
    for (const claim of timeline.claims) {
      const before = timeline.claims.find(({ epoch }) => epoch === claim.epoch - 1)
      if (
        !before ||
        timeline.settles.some(
          (settle) => settle.epoch === before.epoch && settle.result === 'written',
        )
      )
        continue
      recovered++
      const silentAt = faults.get(before.p)?.findLast((t) => t > before.since.t && t < claim.t)
      if (silentAt !== undefined) maxMs = Math.max(maxMs, claim.t - silentAt)
    }
  }
  return { recovered, maxMs }
}

/** When each process was killed or paused, oldest first. */
function faultsOf(lines: readonly Line[]): Map<string, number[]> {
  const faults = new Map<string, number[]>()
  for (const line of lines) {
    const whose =
      line.e === 'kill' || line.e === 'pause'
        ? line.of
        : line.e === 'self.kill' || line.e === 'self.stop'
          ? line.p
          : undefined
    if (whose !== undefined) faults.set(whose, [...(faults.get(whose) ?? []), line.t])
  }
  return faults
}

/** Late results that were refused, once per run. */
export function countStaleRejections(timelines: readonly Timeline[]): number {
  return timelines.reduce((sum, { lost, settles }) => {
    const refused = settles.filter(({ result }) => result === 'conflict').map(({ epoch }) => epoch)
    return sum + new Set([...refused, ...lost.map(({ epoch }) => epoch)]).size
  }, 0)
}

/** Runs that repeat an unsettled one: the price of at-least-once. */
export function countReruns(timelines: readonly Timeline[]): number {
  return timelines.reduce((sum, { starts, settles }) => {
    const settled = new Set(
      settles.filter(({ result }) => result === 'written').map(({ epoch }) => epoch),
    )
    const unsettled = starts.filter(({ epoch }) => !settled.has(epoch)).length
    const last = starts.at(-1)
    return sum + (last && !settled.has(last.epoch) ? unsettled - 1 : unsettled)
  }, 0)
}
