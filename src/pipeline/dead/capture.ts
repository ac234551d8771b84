import { createHash } from 'node:crypto'
import type { Json, Payload, Reason, Source } from '../../letter/letter.ts'
import type { Timestamp } from '../../letter/time.ts'
import { never } from '../../policy/backoff.ts'
import type { Store } from '../../store.ts'
import type { Captured, Capturer } from '../../capture/capture.ts'
import { isQueueName } from '../../check/queue-name.ts'
import { letterId, thrownOf } from '../../capture/mailbox.ts'

/** As much of a dead record of a pipeline as its letter says about it. */
export interface DeadStream {
  /** One dead record, one key, however often it is read, and in whichever topic. */
  deadKey: string
  source: Extract<Source, { kind: 'pipeline' }>
  body: Omit<Payload, 'version'>
  errorType: string
  message: string
  code?: string
  stack?: string
  /** Calls after the first, before it was given up. */
  retries: number
  firstFailedAt: Timestamp
  headers: Readonly<Record<string, string>>
  /** Replayed as often as it may be. */
  quarantined: boolean
  /** Where it lies, and what is needed to send it back. */
  metadata: { [key: string]: Json }
}

/** Where the letters of dead records are kept. */
export interface PipelineKeeper {
  /** Resolves once it is kept for good. */
  keep(captured: Captured): Promise<unknown>
  /** Removes a letter for ever, if it is there. */
  forget(letterId: string): Promise<unknown>
  readonly store: Store
}

export function pipelineKeeper(
  capturer: Pick<Capturer, 'capture'>,
  admin: { forget(id: string, by: string): Promise<unknown> },
  store: Store,
): PipelineKeeper {
  return {
    keep: (captured) => capturer.capture(captured),
    forget: (id) => admin.forget(id, 'erasure'),
    store,
  }
}

/** What is wrong with a record itself, by the words of pipelines. */
const reasons: ReadonlyMap<string, Reason> = new Map([
  ['MALFORMED', 'malformed'],
  ['MAX_HOPS', 'max-hops'],
  ['CRASH_LOOP', 'crash-loop'],
])

/**
 * A dead record of a pipeline, ready to capture. It is parked: its node has tried it as often as it should, and it goes back when somebody
 * says so. Captured again it is the same letter, whatever became of it.
 */
export function pipelineCapture(dead: DeadStream): Captured {
  const { source, errorType: name, message, code, stack, firstFailedAt, metadata } = dead
  const reason = dead.quarantined ? 'replay-limit' : reasons.get(name)
  const at = firstFailedAt
  const failure = { name, message, causes: [], at, ...(code ? { code } : {}) }
  const { traceparent } = dead.headers
  return {
    queue: queueOf(source.node),
    source,
    payload: { ...dead.body, version: 1 },
    thrown: thrownOf(stack ? { ...failure, stack } : failure),
    context: {
      id: pipelineLetterId(source.cluster, dead.deadKey),
      dedupeKey: dead.deadKey,
      attempts: Math.max(0, dead.retries) + 1,
      failedAt: firstFailedAt,
      headers: { ...dead.headers },
      by: `pipeline ${source.cluster}`,
      policy: never(),
      metadata: { ...metadata, deadKey: dead.deadKey },
      ...(traceparent === undefined ? {} : { traceparent }),
    },
    replays: reprocessedIn(metadata),
    ...(reason ? { reason } : {}),
  }
}

/** The count comes from outside: what is no count is taken for none. */
function reprocessedIn({ reprocessed }: DeadStream['metadata']): number {
  return Number.isSafeInteger(reprocessed) && Number(reprocessed) > 0 ? Number(reprocessed) : 0
}

/** The letter of a dead record, by nothing but its key: a tombstone has no more. */
export function pipelineLetterId(cluster: string, deadKey: string): string {
  const key = createHash('sha256')
    .update(JSON.stringify(['pipeline', cluster, deadKey]))
    .digest('hex')
  return letterId(key)
}

/** The queue of a node's letters. */
export function queueOf(node: string): string {
  if (isQueueName(node)) return node
  return `node-${createHash('sha256').update(node).digest('hex').slice(0, 16)}`
}
