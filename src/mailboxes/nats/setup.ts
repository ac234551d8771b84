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
import type { JetStreamConnection } from '../../backends/nats/connection.ts'

/**
 * The settings of a new stream. An existing stream is not changed: people may have set other
 * limits.
 */
export interface StreamSettings {
  replicas?: number
  maxMessages?: number
  dedupeSeconds?: number
}

/**
 * How long the server itself hides a delivery. Any other visibility is requested at once by a nak
 * with a delay: the server then redelivers the message after that time, unless it is acknowledged
 * before. It is a little longer than the default visibility, which therefore needs no nak, and a
 * receipt still ends before the time of the server.
 */
export const defaultVisibilityMs = 30_000
const ackWaitMs = defaultVisibilityMs + 1000

/** JetStream measures time in nanoseconds. */
export const nanos = (ms: number): number => Math.round(ms * 1e6)

/** Returns the stream of a mailbox, and creates it if it does not exist. */
export async function ensureStream(
  { streams: { streams } }: JetStreamConnection,
  { stream: name, subject }: Naming,
  { replicas = 1, maxMessages = -1, dedupeSeconds = 120 }: StreamSettings,
): Promise<StreamConfig> {
  const readConfig = async (): Promise<StreamConfig> => (await streams.info(name)).config
  try {
    return await readConfig()
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
    if (isTaken(error)) return readConfig()
    throw error
  }
}

export async function ensureConsumer(
  { streams: { consumers } }: JetStreamConnection,
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
    // Delayed and hidden messages count as pending: a limit would block everything behind them.
    max_ack_pending: -1,
  })
}

/** Settings made by somebody else that would lose messages. */
export function problemsOf(stream: StreamConfig, reader: ConsumerConfig): string[] {
  const { name, storage, discard, max_age: maxAge, max_msgs: most, max_bytes: mostBytes } = stream
  const problems: string[] = []
  if (storage !== StorageType.File)
    problems.push(`the stream ${name} is stored in memory: a restart of the server loses it`)
  if (maxAge > 0) problems.push(`the stream ${name} deletes messages by their age (max_age)`)
  if (discard === DiscardPolicy.Old && (most > 0 || mostBytes > 0))
    problems.push(`the stream ${name} deletes old messages when it is full (discard: old)`)
  if ((reader.max_deliver ?? -1) > 0)
    problems.push(
      `the consumer of ${name} gives up after ${reader.max_deliver} deliveries (max_deliver): such messages stay in the stream unseen`,
    )
  return problems
}
