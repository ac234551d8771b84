import { bugs } from './bugs.ts'
import type { CrashResult } from './crash.ts'
import { violationKinds, type ViolationKind } from './verify.ts'

export interface Verdict extends CrashResult {
  ok: boolean
  /** Why the run is not ok. */
  problems: string[]
}

/**
 * Ok without violations and with enough faults. With a planted bug: ok when it caused one of its
 * violations.
 */
export function verdictOf(result: CrashResult): Verdict {
  const kinds = listViolations(result)
  if (result.bug) {
    const ok = kinds.some((kind) => bugs[result.bug!].shows.includes(kind))
    return { ok, problems: ok ? [] : [`the bug ${result.bug} was not caught`], ...result }
  }
  const problems = kinds.map((kind) => `${kind}: ${result[kind]}`)
  const least = Math.floor(result.seconds / 10)
  for (const kind of ['kills', 'self_kills', 'sent', 'processed', 'dead'] as const)
    if (result[kind] < least) problems.push(`only ${result[kind]} ${kind} of ${least}`)
  return { ok: problems.length === 0, problems, ...result }
}

export function listViolations(result: CrashResult): ViolationKind[] {
  return violationKinds.filter((kind) => result[kind] > 0)
}

/** Formats the verdict for people. */
export function formatVerdict(verdict: Verdict): string {
  const row = (name: string, value: string | number): string => `  ${name.padEnd(18)}${value}\n`
  const { ok, bug, problems, evidence } = verdict
  const violations = violationKinds.map((kind) => row(kind, verdict[kind])).join('')
  const points = Object.entries(verdict.failpoints).map(([point, n]) => `${n} ${point}`)
  const seen =
    row('mailbox', verdict.broker) +
    row('kill -9', `${verdict.kills}, and ${verdict.self_kills} by messages and failpoints`) +
    row('pauses, restarts', `${verdict.pauses}, ${verdict.restarts}`) +
    row('failpoints', points.join(', ')) +
    row('server', `${verdict.server_restarts} restarts, ${verdict.server_freezes} freezes`) +
    row('cuts', verdict.cuts) +
    row('sent', `${verdict.sent}, and ${verdict.unknown} unknown`) +
    row('ended', `${verdict.processed} processed, ${verdict.dead} dead`) +
    row('dead by kills', `${verdict.dead_by_kills} that were good`) +
    row('duplicates', verdict.duplicates) +
    row('drained in', `${verdict.drain_ms} ms`)
  const examples = verdict.examples.map((example) => `  ${example}\n`).join('')
  const outcome = ok ? (bug ? `CAUGHT ${bug}` : 'OK') : `FAILED: ${problems.join('; ')}`
  const kept = evidence === undefined ? '' : `evidence: ${evidence}\n`
  return `must be 0\n${violations}seen\n${seen}${examples ? `examples\n${examples}` : ''}${kept}${outcome}\n`
}
