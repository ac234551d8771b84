import type { Clock } from '../clock/clock.ts'
import type { Deadlines } from '../clock/deadlines.ts'
import { hasCode } from '../errors.ts'
import { idempotencyKeyOf } from '../letter/idempotency-key.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { decodePayload } from '../letter/payload.ts'
import { failedResultOf, type FailedResult } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { Rule } from '../policy/classify.ts'
import { checkFitness } from '../policy/decide.ts'
import type { FingerprintRule } from '../policy/fingerprint-rules.ts'
import { understand } from '../policy/judge.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'
import { insideRedelivery } from '../run-context.ts'
import { errorTypeOf, startSpan, traceOf, type OpenSpan, type SpanDescription } from '../tracing.ts'
import type { HeldLease } from './leases.ts'
import type { RunResult } from './run-result.ts'
import type { Handler } from './run.ts'

/** A claimed letter and its run. */
export interface ActiveRun {
  letter: DeadLetter
  lease: HeldLease
  /** Set while the handler runs. Resolves when the handler returns, and never rejects. */
  handling: Promise<unknown> | undefined
  /** True after a stop has released the letter: the result of the run is ignored. */
  isReleased: boolean
}

export interface ExecuteOptions {
  clock: Clock
  hub: ObserverHub
  worker: string
  graceMs: number
  timeoutMsFor: (queue: string) => number
  classifierRules: readonly Rule[]
  fingerprints?: readonly FingerprintRule[]
  /** What is hidden of the letters of a queue. Default: nothing. */
  redactionFor?: (queue: string) => Redaction | undefined
}

export interface ExecuteContext extends ExecuteOptions {
  handlers: ReadonlyMap<string, Handler>
  deadlines: Deadlines
  /** The handler timed out and ignores its signal. */
  onStuck: (run: ActiveRun) => void
}

/** Runs a claimed letter: check the lease and the letter, find its handler, decode, call. */
export function execute(run: ActiveRun, context: ExecuteContext): RunResult | Promise<RunResult> {
  const { letter, lease } = run
  const { clock, handlers, hub, worker } = context
  // The lease ended before the run started: another worker may run the letter by now.
  if (lease.controller.signal.aborted || clock.mono() >= lease.leaseEndsMs)
    return { kind: 'released' }
  const unfit = checkFitness(letter, clock.now())
  if (unfit) return { kind: 'unfit', ...unfit }
  const handler = handlers.get(letter.queue)
  if (!handler) return { kind: 'released' }
  const decoded = decodeInput(letter)
  if ('kind' in decoded) return decoded
  const span = startSpan(() => runSpan(letter))
  hub.emit({ type: 'started', letter, worker })
  const handle = (): Promise<RunResult> => runHandler(handler, decoded.input, run, context)
  return span ? runInSpan(span, handle) : handle()
}

/**
 * A run begins a trace of its own, which is linked to that of the capture: between the two lie
 * hours, and many runs can follow one capture.
 */
function runSpan(letter: DeadLetter): SpanDescription {
  const { id, queue, retries, payload } = letter
  return {
    name: `process ${queue}`,
    kind: 'consumer',
    isRoot: true,
    attributes: {
      'messaging.system.name': 'redrive',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': queue,
      'messaging.message.id': id,
      'messaging.message.body.size': payload.size,
      'redrive.retry': retries,
    },
    link: traceOf(letter) ?? {},
  }
}

async function runInSpan(span: OpenSpan, handle: () => Promise<RunResult>): Promise<RunResult> {
  try {
    const result = await span.run(handle)
    span.set('redrive.outcome', result.kind)
    if (result.kind === 'failed') span.fail(errorTypeOf(result.judged.failure))
    return result
  } finally {
    span.end()
  }
}

function decodeInput({ payload, retries }: DeadLetter): { input: unknown } | RunResult {
  try {
    return { input: decodePayload(payload) }
  } catch (error) {
    const note = `the payload cannot be decoded as ${payload.contentType}: ${String(error)}`
    return { kind: 'unfit', reason: 'malformed', retries: retries - 1, note }
  }
}

/**
 * Runs the handler with a time limit. When the time is up its signal aborts, and the handler has
 * `graceMs` to return. Success during the grace period counts: another run would do the work twice.
 */
async function runHandler(
  handler: Handler,
  input: unknown,
  run: ActiveRun,
  context: ExecuteContext,
): Promise<RunResult> {
  const { letter, lease } = run
  const { deadlines, graceMs, onStuck } = context
  const timeoutMs = context.timeoutMsFor(letter.queue)
  const handling = callHandler(handler, input, run)
  run.handling = handling
  const inTime = await deadlines.within(handling, timeoutMs)
  if (inTime) return resultOf(run, inTime.report, context)
  const timeout = new HandlerTimeout(timeoutMs)
  lease.controller.abort(timeout)
  const late = await deadlines.within(handling, graceMs)
  if (late) {
    const { report, hasThrown } = late
    return resultOf(run, report && hasThrown ? { ...report, error: timeout } : report, context)
  }
  onStuck(run)
  return failure(letter, { ok: false, error: timeout }, context)
}

/** How a handler ended. Without a report of a failure it has succeeded. */
interface Handled {
  report: FailedResult | undefined
  hasThrown: boolean
}

/** Calls the handler as the run of its letter. Never rejects. */
async function callHandler(handler: Handler, input: unknown, run: ActiveRun): Promise<Handled> {
  const { letter, lease } = run
  const { signal } = lease.controller
  const { retries: attempt, epoch } = letter
  const call = { letter, input, attempt, signal, idempotencyKey: idempotencyKeyOf(letter), epoch }
  try {
    const returned = await insideRedelivery(letter, () => handler(call))
    return { report: failedResultOf(returned), hasThrown: false }
  } catch (error) {
    return { report: { ok: false, error }, hasThrown: true }
  } finally {
    run.handling = undefined
  }
}

class HandlerTimeout extends Error {
  constructor(timeoutMs: number) {
    super(`the handler did not return within ${timeoutMs} ms (timeoutMs)`)
    this.name = 'TimeoutError'
  }
}

/** The result of a handler that has returned. Without a report of a failure it has succeeded. */
function resultOf(
  { letter, lease }: ActiveRun,
  report: FailedResult | undefined,
  options: ExecuteOptions,
): RunResult {
  if (!report) return { kind: 'resolved' }
  const { reason } = lease.controller.signal
  return isOurAbort(reason, report.error)
    ? { kind: 'released', report }
    : failure(letter, report, options)
}

/** Whether the handler failed because its queue stops or its lease is lost. */
function isOurAbort(reason: unknown, error: unknown): boolean {
  if (hasCode(reason, 'CLOSED')) return true
  if (!hasCode(reason, 'LEASE_LOST')) return false
  return error === reason || (error instanceof Error && error.name === 'AbortError')
}

function failure(
  { queue }: DeadLetter,
  report: FailedResult,
  { clock, hub, classifierRules, fingerprints, redactionFor }: ExecuteOptions,
): RunResult {
  const onProblem = (error: string): void =>
    hub.emit({ type: 'error', during: `classifying ${queue}`, error })
  const at = toTimestamp(clock.now())
  const understood = understand(
    report.error,
    queue,
    at,
    classifierRules,
    onProblem,
    undefined,
    fingerprints,
    redactionFor?.(queue),
  )
  return { kind: 'failed', report, ...understood }
}
