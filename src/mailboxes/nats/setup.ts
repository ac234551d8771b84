import {
  AckPolicy,
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type ConsumerConfig,
  type StreamConfig,
} from '@nats-io/jetstream'
import { consumer, type Naming } from './naming.ts'
import { isMissing, isTaken } from '../../backends/nats/errors.ts'
import type { Wire } from '../../backends/nats/connection.ts'

/** What a stream is created with. One that is there already stays as it is: people may have given it other limits. */
export interface StreamSettings {
  replicas?: number
  maxMessages?: number
  dedupeSeconds?: number
}

/**
 * How long the server itself hides what it delivers. Any other visibility is asked for by a nak with a delay, at once: the server then
 * delivers the message again after that time, unless it is acknowledged before. It is a little longer than the usual visibility, so
 * that this needs no nak, and a receipt still ends before the server's time does.
 */
export const usualVisibilityMs = 30_000
const ackWaitMs = usualVisibilityMs + 1000

/** Times in JetStream are in nanoseconds. */
export const nanos = (ms: number): number => Math.round(ms * 1e6)

/** The stream of a mailbox, made if it is not there. */
export async function ensureStream(
  { streams: { streams } }: Wire,
  { stream: name, subject }: Naming,
  { replicas = 1, maxMessages = -1, dedupeSeconds = 120 }: StreamSettings,
): Promise<StreamConfig> {
  const asItIs = async (): Promise<StreamConfig> => (await streams.info(name)).config
  try {
    return await asItIs()
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  try {
    const { config } = await streams.add({
      name,
      subjects: [subject],
      retention: RetentionPolicy.Workqueue,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      allow_direct: true,
      num_replicas: replicas,
      max_msgs: maxMessages,
      duplicate_window: nanos(dedupeSeconds * 1000),
    })
    return config
  } catch (error) {
    if (isTaken(error)) return asItIs()
    throw error
  }
}

export async function ensureConsumer(
  { streams: { consumers } }: Wire,
  { stream }: Naming,
): Promise<void> {
  try {
    await consumers.info(stream, consumer)
    return
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  await consumers.add(stream, {
    durable_name: consumer,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ackWaitMs),
    max_deliver: -1,
    // Delayed and hidden messages count as pending: a limit would stop everything behind them.
    max_ack_pending: -1,
  })
}

/** What would lose messages, in settings that somebody else has made. */
export function problemsOf(stream: StreamConfig, reader: ConsumerConfig): string[] {
  const { name, storage, discard, max_age: maxAge, max_msgs: most, max_bytes: mostBytes } = stream
  const problems: string[] = []
  if (storage !== StorageType.File)
    problems.push(`the stream ${name} is kept in memory: a restart of the server loses it`)
  if (maxAge > 0) problems.push(`the stream ${name} deletes messages by their age (max_age)`)
  if (discard === DiscardPolicy.Old && (most > 0 || mostBytes > 0))
    problems.push(`the stream ${name} deletes old messages when it is full (discard: old)`)
  if ((reader.max_deliver ?? -1) > 0)
    problems.push(
      `the consumer of ${name} gives up after ${reader.max_deliver} deliveries (max_deliver): messages stay behind unseen`,
    )
  return problems
}
