import { bugs } from './bugs.ts'
import type { CrashResult } from './crash.ts'
import { violationKinds, type ViolationKind } from './verify.ts'

export interface Verdict extends CrashResult {
  ok: boolean
  /** Why the run is not ok. */
  problems: string[]
  /** With a planted bug: whether its violations were found. */
  caught?: boolean
}

export interface Demands {
  minKills: number
  latePauses: number
  /** Checked only where these faults are possible. */
  minRestarts: number
  minCuts: number
}

/**
 * A run is ok when there were no violations, enough faults, and every late result was refused. With
 * a planted bug it is ok when the bug caused one of its violations.
 */
export function verdictOf(result: CrashResult, demands: Demands): Verdict {
  if (result.bug) {
    const { shows } = bugs[result.bug]
    const caught = listViolations(result).some((kind) => shows.includes(kind))
    return {
      ok: caught,
      problems: caught ? [] : [`the bug ${result.bug} was not caught`],
      caught,
      ...result,
    }
  }
  const { a6, kills, faults, server_restarts: restarts } = result
  const problems: string[] = listViolations(result).map((kind) => `${kind}: ${result[kind]}`)
  if (kills < demands.minKills) problems.push(`only ${kills} kills of ${demands.minKills}`)
  if (faults.includes('restarts') && restarts < demands.minRestarts)
    problems.push(`only ${restarts} server restarts of ${demands.minRestarts}`)
  if (faults.includes('cuts') && countCuts(result) < demands.minCuts)
    problems.push(`only ${countCuts(result)} cuts of ${demands.minCuts}`)
  if (a6.pauses < demands.latePauses)
    problems.push(`only ${a6.pauses} late results of ${demands.latePauses}`)
  if (a6.rejected < a6.pauses)
    problems.push(`${a6.pauses - a6.rejected} late results were not refused`)
  if (a6.aborted < a6.waited) problems.push(`${a6.waited - a6.aborted} late runs were not aborted`)
  return { ok: problems.length === 0, problems, ...result }
}

export function listViolations(result: CrashResult): ViolationKind[] {
  return violationKinds.filter((kind) => result[kind] > 0)
}

function countCuts({ cuts }: CrashResult): number {
  return Object.values(cuts).reduce((sum, n) => sum + n, 0)
}

/** Formats the verdict for people. */
export function formatVerdict(verdict: Verdict): string {
  const { a6 } = verdict
  const row = (name: string, value: string | number): string => `  ${name.padEnd(18)}${value}\n`
  const violations = violationKinds.map((kind) => row(kind, verdict[kind])).join('')
  const { server_restarts: restarts, server_freezes: freezes, unknown } = verdict
  const cuts = Object.entries(verdict.cuts).map(([kind, n]) => `${n} ${kind.replace('_', '-')}`)
  const server =
    row('server', `${restarts} restarts, ${freezes} freezes`) +
    row('cuts', cuts.join(', ')) +
    row('store unavailable', `for ${verdict.failed_opens} opens and ${verdict.failed_calls} calls`)
  const seen =
    row('store', `${verdict.store}; faults of ${verdict.faults.join(', ')}`) +
    row('kill -9', `${verdict.kills}, and ${verdict.self_kills} by letters themselves`) +
    row('pauses, restarts', `${verdict.pauses}, ${verdict.restarts}`) +
    (verdict.faults.includes('cuts') ? server : '') +
    row('captured', verdict.captured) +
    row(
      'never answered',
      `${unknown.captures} captures, ${unknown.captures_kept} of them stored; ${unknown.settles} settles`,
    ) +
    row(
      'ended',
      `${verdict.resolved} resolved, ${verdict.exhausted} exhausted, ${verdict.parked} parked`,
    ) +
    row('claims, runs', `${verdict.claims}, ${verdict.runs}`) +
    row('taken over', `${verdict.recovered}, after ${verdict.max_recovery_ms} ms at most`) +
    row('run again', verdict.duplicate_runs) +
    row('late, refused', verdict.stale_rejected) +
    row(
      'targeted pauses',
      `${a6.pauses}, ${a6.rejected} refused; ${a6.waited} waited, ${a6.aborted} aborted`,
    ) +
    row('drained in', `${verdict.drain_ms} ms`)
  const examples = verdict.examples.map((example) => `  ${example}\n`).join('')
  const kept = verdict.evidence ? `evidence: ${verdict.evidence}\n` : ''
  const outcome = verdict.ok
    ? verdict.bug
      ? `CAUGHT ${verdict.bug}`
      : 'OK'
    : `FAILED: ${verdict.problems.join('; ')}`
  return `must be 0\n${violations}seen\n${seen}${examples ? `examples\n${examples}` : ''}${kept}${outcome}\n`
}
