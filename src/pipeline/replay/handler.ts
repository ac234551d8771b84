import { RedriveError } from '../../errors.ts'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import { Fetcher } from '../../backends/kafka/fetcher.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import { countPartitions } from '../../backends/kafka/topics.ts'
import { Transactor } from '../../backends/kafka/transactor.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import type { Handler, ReplayingHandler } from '../../redelivery/run.ts'
import type { ReplayOutcome } from '../../letter/result.ts'
import { peekEnvelope, type EnvelopePeek } from './peek.ts'
import { isSpent, type Headers } from '../dead/lineage.ts'
import { keyOf } from '../dead/stream.ts'
import { asQuarantined, asReplayed } from './record.ts'
import { letterNote, markOf, ofAnother, quarantinedNote, Replayed } from './replayed.ts'
import type { NodeSettings } from '../graph/settings.ts'

export interface ReplayHandlerOptions {
  cluster: Cluster
  settings: NodeSettings
}

/** A handler with connections. */
export type ReplayHandler = ReplayingHandler & { close(): Promise<void> }

/** Where the dead record of a letter is stored. */
type Lying = Pick<StoredRecord, 'topic' | 'partition' | 'offset'>
type Bounds = Awaited<ReturnType<Fetcher['bounds']>>[number]

/**
 * Runs letters of a node by returning their records to their source, with edits. A resolved letter
 * is stored at the broker, and the broker knows that this dead record was replayed; a record that a
 * replay of the whole topic has sent meanwhile is not sent again. At the limit it goes to the
 * quarantine topic, once, and the letter is parked; after the limit was raised, a retry sends it.
 */
export function replayHandler({ cluster, settings }: ReplayHandlerOptions): ReplayHandler {
  const fetcher = new Fetcher(cluster)
  const admin = cluster.admin()
  const replayed = new Replayed({ cluster, fetcher, admin, place: settings })
  // Others replay at the same time; nobody is fenced.
  const transactor = new Transactor(cluster, `redrive.letters.${cluster.clock.id()}`)
  let opening: Promise<void> | undefined
  const open = async (): Promise<void> => {
    const partitions = await countPartitions(cluster, admin, settings.dlq.topic)
    await replayed.create(partitions, settings.replicas)
  }
  const opened = (): Promise<void> => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  /**
   * Of several copies, compaction keeps the last, and a replay sends that one. It is searched only
   * after an offset that the topic still has: retention removes a record with its copies, and
   * reading a whole topic for each old letter takes too long.
   */
  const wentAsCopy = async (
    letter: DeadLetter,
    lying: Lying,
    { first, next }: Bounds,
    last: number,
  ): Promise<boolean> => {
    const { partition, offset } = lying
    if (offset < first) return false
    const end = Math.min(last + 1, next)
    for await (const { records } of fetcher.readAll(lying, offset + 1, end))
      for (const record of records)
        if (
          keyOf(record) === deadKeyOf(letter) &&
          replayed.has(partition, record.offset) &&
          !replayed.isQuarantined(partition, record.offset)
        )
          return true
    return false
  }

  const publish = async (letter: DeadLetter, signal?: AbortSignal): Promise<ReplayOutcome> => {
    const lying = lyingOf(letter)
    await opened()
    await replayed.catchUp()
    // Somebody has deleted its topic since.
    if (!replayed.isThere) {
      await open()
      await replayed.catchUp()
    }
    // Read first: marks of others may come after the bounds.
    const last = replayed.lastOf(lying.partition)
    const [bounds] = await cluster.call(() => fetcher.bounds([lying]))
    const there = bounds && (await recordAt(cluster, fetcher, lying, bounds))
    // A recreated topic has other records there. Then the letter is all that is left of its record,
    // and no mark concerns it.
    const record = there && keyOf(there) === deadKeyOf(letter) ? there : undefined
    const isQueued = lying.topic === settings.dlq.topic && there === record
    if (record && isQueued && last >= bounds!.next) throw ofAnother(replayed.topic, lying.topic)
    const isQuarantined = isQueued && replayed.isQuarantined(lying.partition, lying.offset)
    const before: ReplayOutcome = { kind: 'published', to: 'its topic, by an earlier replay' }
    if (isQueued && !isQuarantined && replayed.has(lying.partition, lying.offset)) return before
    if (isQueued && !record && bounds && (await wentAsCopy(letter, lying, bounds, last)))
      return before
    const found = (record && peekEnvelope(record.value)) ?? peekOf(letter)
    found.headers = headersOf(letter, found.headers)
    if (letter.payload.version > 1) found.value = Buffer.from(letter.payload.bytes)
    const maxReplays = settings.dlq.maxReprocessCount
    if (isSpent(found.reprocessed, maxReplays)) {
      if (record && isQueued && !isQuarantined) {
        const moved = asQuarantined(record, settings.dlq.quarantineTopic, cluster.clock.now())
        await transactor.send([moved, markOf(settings, lying, quarantinedNote)])
      }
      return { kind: 'limit', replays: found.reprocessed, maxReplays }
    }
    // A record without an envelope has its own topic as its source, and must not be sent there.
    const isStray = found.topic === lying.topic
    if ((isStray || !found.replayable) && letter.payload.version === 1) throw bare(letter.id)
    const topic = isStray ? settings.inputTopic : found.topic || settings.inputTopic
    const outgoing = asReplayed(
      { key: Buffer.from(deadKeyOf(letter), 'latin1'), timestampMs: toMs(letter.failedAt) },
      found,
      {
        topic,
        partitions: await countPartitions(cluster, admin, topic),
        id: letter.id,
        node: settings.node,
        nowMs: cluster.clock.now(),
      },
    )
    if (!outgoing) throw bare(letter.id)
    signal?.throwIfAborted()
    const marks = isQueued ? [markOf(settings, lying, letterNote + letter.id)] : []
    await transactor.send([outgoing, ...marks])
    return { kind: 'published', to: `topic ${topic}` }
  }
  const handler: Handler = async ({ letter, signal }) => {
    const outcome = await publish(letter, signal)
    if (outcome.kind === 'limit') throw spent(letter.id, outcome.replays, outcome.maxReplays)
  }
  return Object.assign(handler, {
    replay: (letter: DeadLetter) => publish(letter),
    close: async () => {
      await transactor.close()
      await Promise.all([fetcher.close(), admin.close().catch(() => {})])
    },
  })
}

function lyingOf({ id, source, metadata }: DeadLetter): Lying {
  const { dlqTopic: topic, dlqPartition: partition, dlqOffset: offset } = metadata
  const isWhole =
    typeof topic === 'string' && typeof partition === 'number' && typeof offset === 'number'
  if (source.kind === 'pipeline' && isWhole) return { topic, partition, offset }
  throw new RedriveError(
    'INVALID_INPUT',
    `letter ${id} has no location of its dead record (metadata.dlqTopic): it is not from a pipeline, or an edit has removed it`,
  )
}

/** Undefined if the topic no longer has it. */
async function recordAt(
  cluster: Cluster,
  fetcher: Fetcher,
  { topic, partition, offset }: Lying,
  { first, next }: Bounds,
): Promise<StoredRecord | undefined> {
  if (offset < first || offset >= next) return undefined
  const { records } = await cluster.call(() => fetcher.read({ topic, partition }, offset))
  const record = records.find((one) => one.offset === offset)
  return record && record.value.length > 0 ? record : undefined
}

/** From the letter alone, which outlives the records of the topic. */
function peekOf({
  source,
  failure,
  metadata,
  payload,
  headers = {},
  failedAt,
}: DeadLetter): EnvelopePeek {
  const { key, reprocessed, replayable } = metadata
  const { topic, partition, node, graph } =
    source.kind === 'pipeline' ? source : { topic: '', partition: -1, node: '', graph: '' }
  return {
    errorType: failure.name,
    errorMessage: failure.message,
    failedMs: toMs(failure.at),
    firstFailedMs: toMs(failedAt),
    node,
    graph: graph ?? '',
    topic,
    partition,
    reprocessed: typeof reprocessed === 'number' ? reprocessed : 0,
    key: typeof key === 'string' ? Buffer.from(key, 'base64') : undefined,
    headers: Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)]),
    replayable: replayable !== false && payload.reference === undefined,
    value: Buffer.from(payload.bytes),
    isStream: payload.contentType.startsWith('application/x-protobuf'),
  }
}

/** Edited headers as they are now, and the others byte for byte. */
function headersOf({ history, historyOmitted, headers = {} }: DeadLetter, found: Headers): Headers {
  if (historyOmitted === 0 && !history.some(({ action }) => action === 'edit')) return found
  const now = new Map(Object.entries(headers))
  const before = new Map(found.map(([name, text]) => [name.toString(), text?.toString() ?? '']))
  const edited = [...now].filter(([name, text]) => before.get(name) !== text)
  return [
    ...found.filter(([name]) => now.get(name.toString()) === before.get(name.toString())),
    ...edited.map(([name, text]) => [Buffer.from(name), Buffer.from(text)] as const),
  ]
}

function deadKeyOf({ metadata }: DeadLetter): string {
  return typeof metadata['deadKey'] === 'string' ? metadata['deadKey'] : ''
}

function spent(id: string, count: number, max: number): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `letter ${id} was replayed ${count} times and died each time: find the cause, then raise max_reprocess_count (${max}) to replay it again`,
  )
}

function bare(id: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `letter ${id} has no payload to send: add one by an edit, or resolve the letter`,
  )
}
