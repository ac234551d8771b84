import type { Line, LineOf } from './ledger.ts'
import type { Life } from './life.ts'
import type { Stored } from './rules.ts'
import { cutKinds, type CutKind } from './storm.ts'

/** Targeted pauses: a worker stood still until another one had settled its letter, and then went on. */
export interface LatePauses {
  pauses: number
  /** Its late result was refused. */
  rejected: number
  /** Of those, how many waited for their signal before they answered… */
  waited: number
  /** …and were told to stop. */
  aborted: number
  /** Resumed, but the process died before it answered, or nobody knows what its answer came to. */
  unanswered: number
}

export function latePauses(lines: readonly Line[], lives: readonly Life[]): LatePauses {
  const byId = new Map(lives.map((life) => [life.id, life]))
  const stops = lines.filter((line): line is LineOf<'self.stop'> => line.e === 'self.stop')
  const totals: LatePauses = { pauses: 0, rejected: 0, waited: 0, aborted: 0, unanswered: 0 }
  for (const line of lines) {
    if (line.e !== 'late.resume') continue
    const life = byId.get(line.id)
    const same = ({ epoch }: { epoch?: number }): boolean => epoch === line.epoch
    const accepted =
      life?.settles.some((settle) => same(settle) && settle.result === 'written') ?? false
    const rejected = life?.lost.some((lost) => same(lost) && lost.p === line.of) ?? false
    const unknown = life?.settles.some((settle) => same(settle) && settle.result === 'unknown')
    if (!accepted && !rejected && (unknown || ended(line.of, lines))) {
      totals.unanswered++
      continue
    }
    totals.pauses++
    if (!accepted && rejected) totals.rejected++
    const point = stops.find((stop) => stop.id === line.id && same(stop))?.point
    if (point !== 'signal') continue
    totals.waited++
    if (life?.ends.some((end) => same(end) && end.aborted)) totals.aborted++
  }
  return totals
}

/** What was asked and never answered, and how much of it was found done in the end. */
export interface Unknown {
  captures: number
  captures_kept: number
  settles: number
}

/** Letters by what their producer last knew, and settles one by one. */
export function unknowns(lives: readonly Life[], stored: readonly Stored[]): Unknown {
  const kept = new Set(stored.map(({ id }) => id))
  const captures = lives.filter(({ sha, captured }) => sha !== undefined && !captured)
  return {
    captures: captures.length,
    captures_kept: captures.filter(({ id }) => kept.has(id)).length,
    settles: lives.reduce(
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
  for (const line of lines) if (line.e === 'cut') cuts[line.kind] += line.links.length
  const blows = lines.filter((line) => line.e === 'server.down').map(({ kind }) => kind)
  const freezes = blows.filter((kind) => kind === 'freeze').length
  return { server_restarts: blows.length - freezes, server_freezes: freezes, cuts }
}

/** Whether the process died unasked, or by the killer, before the run was frozen. */
function ended(name: string, lines: readonly Line[]): boolean {
  return (
    lines.some((line) => line.p === name && line.e === 'self.kill') ||
    lines.some(
      (line) => 'of' in line && line.of === name && (line.e === 'kill' || line.e === 'exit'),
    )
  )
}

/**
 * Letters that were taken over from a worker that went silent, and the longest time from its death or pause to
 * the claim by another.
 */
export function recoveries(
  lives: readonly Life[],
  lines: readonly Line[],
): { recovered: number; maxMs: number } {
  const faults = faultsOf(lines)
  let recovered = 0
  let maxMs = 0
  for (const life of lives) {
    for (const claim of life.claims) {
      const before = life.claims.find(({ epoch }) => epoch === claim.epoch - 1)
      if (
        !before ||
        life.settles.some((settle) => settle.epoch === before.epoch && settle.result === 'written')
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

/** Results that came too late and were refused, once per run. */
export function staleRejections(lives: readonly Life[]): number {
  return lives.reduce((sum, { lost, settles }) => {
    const refused = settles.filter(({ result }) => result === 'conflict').map(({ epoch }) => epoch)
    return sum + new Set([...refused, ...lost.map(({ epoch }) => epoch)]).size
  }, 0)
}

/** Runs that repeat an earlier one which nobody settled: the price of at-least-once. */
export function reruns(lives: readonly Life[]): number {
  return lives.reduce((sum, { starts, settles }) => {
    const settled = new Set(
      settles.filter(({ result }) => result === 'written').map(({ epoch }) => epoch),
    )
    const unsettled = starts.filter(({ epoch }) => !settled.has(epoch)).length
    const last = starts.at(-1)
    return sum + (last && !settled.has(last.epoch) ? unsettled - 1 : unsettled)
  }, 0)
}
