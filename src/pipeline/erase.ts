import { createHash } from 'node:crypto'
import { pipelineLetterId, queueOf } from './dead/capture.ts'
import { removeEdits } from '../admin/edits.ts'
import { RedriveError } from '../errors.ts'
import type { Cluster } from '../backends/kafka/cluster.ts'
import { Fetcher } from '../backends/kafka/fetcher.ts'
import type { StoredRecord } from '../backends/kafka/record.ts'
import type { OutgoingRecord } from '../backends/kafka/sender.ts'
import { countPartitions } from '../backends/kafka/topics.ts'
import { Transactor } from '../backends/kafka/transactor.ts'
import { states, type DeadLetter } from '../letter/letter.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import type { DocumentStore } from './documents/documents.ts'
import { keyOf } from './dead/stream.ts'
import { peekEnvelope } from './replay/peek.ts'
import { erasedNote, markOf, Replayed } from './replay/replayed.ts'
import type { NodeSettings } from './graph/settings.ts'
import { readStream, type PipeStream } from './stream.ts'

/** Whose data to erase: one stream, all streams of an account, or all records with this key. */
export type ErasureKey = { streamId: string } | { accountId: string } | { recordKey: string }

export interface EraseOptions {
  cluster: Cluster
  /** The nodes to search. */
  nodes: readonly NodeSettings[]
  key: ErasureKey
  /** Who asked for the erasure, and why: stored in its record. */
  by: string
  reason: string
  /** Where letters of dead records are stored. */
  store?: Store
  /** Where documents that travel by reference are stored. */
  documents?: DocumentStore
}

export interface ErasureReport {
  /** The id of the record of the erasure, if there is a store. */
  id: string
  /** Erased dead records: Kafka deletes them when it compacts their topics. */
  records: number
  /** Matching dead records without a key, or with an empty one, which only retention can delete. */
  keyless: number
  letters: number
  /** Matching letters that are running: erase again when they are done. */
  leased: number
  documents: number
}

/**
 * Erases dead records by their data subject, wherever the pipeline stores them: in the DLQ and
 * quarantine topics, as letters with all their versions, and as documents. The record of the
 * erasure has who asked, why, and a hash of the key. May be called twice. Input topics are not
 * changed.
 */
export async function erase(options: EraseOptions): Promise<ErasureReport> {
  const { cluster, nodes, by, reason, store, documents } = options
  const key = checkKey(options.key)
  const [[kind, text]] = Object.entries(key) as [[string, string]]
  const report: ErasureReport = {
    id: cluster.clock.id(),
    records: 0,
    keyless: 0,
    letters: 0,
    leased: 0,
    documents: 0,
  }
  const locations = new Set<string>()
  const ids = await eraseRecords({ ...options, key }, report, locations)
  if (store) await eraseLetters(store, { nodes, key, ids }, report, locations)
  for (const location of documents ? locations : [])
    if (await documents?.remove({ location })) report.documents += 1
  const { id, ...counts } = report
  const hash = createHash('sha256').update(text).digest('hex')
  const at = toTimestamp(cluster.clock.now())
  await store?.records.put('erasure', id, { at, by, reason, kind, hash, ...counts })
  return report
}

/** Requires exactly one criterion: an undefined one would match all records without it. */
function checkKey(key: ErasureKey): ErasureKey {
  const given = Object.entries(key).filter(([, value]) => value !== undefined)
  const [kind = '', text] = given[0] ?? []
  const isKnown = ['streamId', 'accountId', 'recordKey'].includes(kind)
  if (given.length === 1 && isKnown && typeof text === 'string' && text !== '')
    return { [kind]: text } as ErasureKey
  throw new RedriveError(
    'INVALID_INPUT',
    'erase needs exactly one of streamId, accountId and recordKey',
  )
}

/** Returns the letters of erased records. */
async function eraseRecords(
  { cluster, nodes, key }: EraseOptions,
  report: ErasureReport,
  locations: Set<string>,
): Promise<Set<string>> {
  const ids = new Set<string>()
  const fetcher = new Fetcher(cluster)
  const transactor = new Transactor(cluster, `redrive.erase.${cluster.clock.id()}`)
  const admin = cluster.admin()
  try {
    const there = new Set(await cluster.call(() => admin.listTopics()))
    for (const settings of nodes)
      for (const topic of [settings.dlq.topic, settings.dlq.quarantineTopic]) {
        if (!there.has(topic)) continue
        const partitions = await countPartitions(cluster, admin, topic)
        const outgoing: OutgoingRecord[] = []
        for (const copies of await matching(cluster, fetcher, key, topic, partitions)) {
          for (const { stream } of copies) noteLocation(locations, stream)
          const [{ record }] = copies
          const { key: dead } = record
          if (!dead?.length) {
            report.keyless += 1
            continue
          }
          ids.add(pipelineLetterId(settings.cluster, dead.toString('latin1')))
          report.records += 1
          const tombstone = { key: dead, value: null, headers: new Map<Buffer, Buffer>() }
          outgoing.push({ topic, partition: record.partition, record: tombstone })
          // From now on a replay does not send it, even if it has already read it or a copy.
          if (topic === settings.dlq.topic)
            for (const copy of copies) outgoing.push(markOf(settings, copy.record, erasedNote))
        }
        if (outgoing.length === 0) continue
        await new Replayed({ cluster, fetcher, admin, place: settings }).create(
          partitions,
          settings.replicas,
        )
        await transactor.send(outgoing)
      }
  } finally {
    await transactor.close()
    await Promise.all([fetcher.close(), admin.close().catch(() => {})])
  }
  return ids
}

interface Match {
  record: StoredRecord
  stream: PipeStream | undefined
}

/** The same dead record may have been written several times. */
type Copies = [Match, ...Match[]]

/**
 * Records that are not erased: erased ones are skipped, whether Kafka has compacted them or not.
 */
async function matching(
  cluster: Cluster,
  fetcher: Fetcher,
  key: ErasureKey,
  topic: string,
  partitions: number,
): Promise<Iterable<Copies>> {
  const places = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
  const bounds = await cluster.call(() => fetcher.bounds(places))
  const found = new Map<string, Copies>()
  for (const [partition, { first, next }] of bounds.entries())
    for await (const { records } of fetcher.readAll(places[partition]!, first, next))
      for (const record of records) {
        // The partition of a key changes with the number of partitions, and each has its own
        // tombstones.
        const name = `${partition}:${keyOf(record)}`
        const seen = peekEnvelope(record.value)
        const stream = seen?.isStream ? readStream(seen.value) : undefined
        if (record.value.length === 0) found.delete(name)
        else if (seen && isOf(key, seen.key, stream))
          found.set(name, [{ record, stream }, ...(found.get(name) ?? [])])
      }
  return found.values()
}

async function eraseLetters(
  store: Store,
  { nodes, key, ids }: { nodes: readonly NodeSettings[]; key: ErasureKey; ids: Set<string> },
  report: ErasureReport,
  locations: Set<string>,
): Promise<void> {
  const queue = nodes.map(({ node }) => queueOf(node))
  for (let cursor: string | undefined; ;) {
    const page = await store.find({
      queue,
      state: [...states],
      order: 'oldest',
      limit: 200,
      payload: true,
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const letter of page.items) {
      const original = (await store.original(letter.id))?.bytes ?? letter.payload.bytes
      const streams = [letter.payload.bytes, original].map(readStream)
      if (!ids.has(letter.id) && !streams.some((one) => isOf(key, keyIn(letter), one, letter)))
        continue
      for (const stream of streams) noteLocation(locations, stream)
      if ((await store.remove({ ids: [letter.id] })) === 0) report.leased += 1
      else report.letters += 1
      await removeEdits(store, letter.id)
    }
    if (page.cursor === undefined) return
    cursor = page.cursor
  }
}

function isOf(
  key: ErasureKey,
  recordKey: Buffer | undefined,
  stream: PipeStream | undefined,
  letter?: DeadLetter,
): boolean {
  if ('recordKey' in key) return recordKey?.toString() === key.recordKey
  if ('accountId' in key) return stream?.metadata?.accountId === key.accountId
  const ofLetter = letter?.source.kind === 'pipeline' ? letter.source.streamId : undefined
  return stream?.streamId === key.streamId || ofLetter === key.streamId
}

function keyIn({ metadata }: DeadLetter): Buffer | undefined {
  const { key } = metadata
  return typeof key === 'string' ? Buffer.from(key, 'base64') : undefined
}

function noteLocation(locations: Set<string>, stream: PipeStream | undefined): void {
  if (stream?.content.case === 'documentRef') locations.add(stream.content.value.location)
}
