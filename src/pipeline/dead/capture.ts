import { createHash } from 'node:crypto'
import type { Json, Payload, Reason, Source } from '../../letter/letter.ts'
import type { Timestamp } from '../../letter/time.ts'
import { never } from '../../policy/backoff.ts'
import type { Store } from '../../store.ts'
import type { Captured, Capturer } from '../../capture/capture.ts'
import { isQueueName } from '../../check/queue-name.ts'
import { letterId, thrownOf } from '../../capture/mailbox.ts'

/** The part of a dead record that its letter contains. */
export interface DeadStream {
  /** The same key for a dead record however often it is read, and in whichever topic. */
  deadKey: string
  source: Extract<Source, { kind: 'pipeline' }>
  body: Omit<Payload, 'version'>
  errorType: string
  message: string
  code?: string
  stack?: string
  /** Calls after the first one, before the node gave up. */
  retries: number
  firstFailedAt: Timestamp
  headers: Readonly<Record<string, string>>
  /** True if the record has reached its maximum number of replays. */
  quarantined: boolean
  /** Where the record is stored, and what is needed to return it to its source. */
  metadata: { [key: string]: Json }
}

/** Where the letters of dead records are stored. */
export interface PipelineKeeper {
  /** Resolves once the letter is stored durably. */
  keep(captured: Captured): Promise<unknown>
  /** Removes a letter permanently, if it exists. */
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

/** Error types of pipelines that mean that the record itself is wrong. */
const reasons: ReadonlyMap<string, Reason> = new Map([
  ['MALFORMED', 'malformed'],
  ['MAX_HOPS', 'max-hops'],
  ['CRASH_LOOP', 'crash-loop'],
])

/**
 * Converts a dead record of a pipeline into a capture. The letter is parked: its node has retried
 * it as often as configured, and it returns to its source only if somebody decides so. Captured
 * again, it is the same letter, whatever its state.
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

/** The count comes from outside: an invalid value counts as 0. */
function reprocessedIn({ reprocessed }: DeadStream['metadata']): number {
  return Number.isSafeInteger(reprocessed) && Number(reprocessed) > 0 ? Number(reprocessed) : 0
}

/** Finds the letter of a dead record by its key alone: a tombstone has nothing else. */
export function pipelineLetterId(cluster: string, deadKey: string): string {
  const key = createHash('sha256')
    .update(JSON.stringify(['pipeline', cluster, deadKey]))
    .digest('hex')
  return letterId(key)
}

/** The queue of the letters of a node. */
export function queueOf(node: string): string {
  if (isQueueName(node)) return node
  return `node-${createHash('sha256').update(node).digest('hex').slice(0, 16)}`
}
