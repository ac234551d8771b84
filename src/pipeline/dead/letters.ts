import { pipelineCapture, pipelineLetterId, type PipelineKeeper } from './capture.ts'
import { hasCode } from '../../errors.ts'
import { escapeName } from '../../backends/kafka/topics.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import { recordTap, type RecordTapOptions } from '../../taps/kafka.ts'
import type { Tap } from '../../taps/tap.ts'
import { deadStreamOf, keyOf, type Found } from './stream.ts'
import type { NodeSettings } from '../graph/settings.ts'
import { dlqTopicsOf } from '../graph/topics.ts'

type Keeper = Pick<PipelineKeeper, 'keep' | 'forget'>

/** Default of `groupId`: `redrive-letters.{cluster}`. */
export interface PipelineDeadLettersOptions extends Omit<RecordTapOptions, 'topics' | 'take'> {
  /** The pipeline cluster, as in `dlq.{cluster}.{node}`. */
  cluster: string
  keeper: Keeper
  /** Nodes whose topics have custom names. */
  nodes?: readonly Pick<NodeSettings, 'node' | 'dlq'>[]
}

/**
 * Imports the dead records of a pipeline cluster as letters, from all its DLQ and quarantine
 * topics, including later ones. A record is read until it is stored. A record without a value
 * erases: the letter with its key is removed. The topics are not changed.
 */
export function pipelineDeadLetters(
  options: PipelineDeadLettersOptions,
): Pick<Tap, 'start' | 'stop'> {
  const { cluster, keeper, nodes = [], ...rest } = options
  const places = new Map<string, Found>()
  for (const { node, dlq } of nodes) {
    places.set(dlq.topic, { cluster, node, isQuarantine: false })
    places.set(dlq.quarantineTopic, { cluster, node, isQuarantine: true })
  }
  const named = [...places.keys()].map((topic) => topic.replaceAll('.', '\\.'))
  /** Records that are being stored, or could not be stored yet. Their tombstones come later. */
  const open = new Map<string, Promise<void>>()
  const close = (key: string, keeping: Promise<void>): void => {
    if (open.get(key) === keeping) open.delete(key)
  }
  return recordTap({
    groupId: `redrive-letters.${escapeName(cluster, 150)}`,
    ...rest,
    topics: new RegExp([dlqTopicsOf(cluster).source, ...named].join('|')),
    take: async (record) => {
      const key = keyOf(record)
      if (record.value.length === 0) {
        const keeping = open.get(key)
        await keeping?.catch((error: unknown) => {
          // The record is read again before this tombstone, unless its partition was revoked: then
          // nobody would report that it was stored.
          close(key, keeping)
          throw error
        })
        await keeper.forget(pipelineLetterId(cluster, key))
        return
      }
      const found = places.get(record.topic) ?? foundBy(cluster, record.topic)
      const keeping = keep(keeper, record, found)
      open.set(key, keeping)
      await keeping
      close(key, keeping)
    },
  })
}

/**
 * A record that is too large for the store is stored without its payload, and with its location.
 */
async function keep(keeper: Keeper, record: StoredRecord, found: Found): Promise<void> {
  const dead = deadStreamOf(record, found)
  try {
    await keeper.keep(pipelineCapture(dead))
  } catch (error) {
    if (!hasCode(error, 'TOO_LARGE')) throw error
    const reference = `kafka:${record.topic}:${record.partition}:${record.offset}`
    const body = { ...dead.body, bytes: new Uint8Array(), size: 0, reference }
    await keeper.keep(pipelineCapture({ ...dead, body }))
  }
}

/** Parses the name of a topic: `dlq.{cluster}.{node}`. */
function foundBy(cluster: string, topic: string): Found {
  const [kind, , node = ''] = topic.split('.')
  return { cluster, node, isQuarantine: kind === 'quarantine' }
}
