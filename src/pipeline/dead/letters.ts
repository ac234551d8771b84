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

/** `groupId` is `redrive-letters.{cluster}` unless said. */
export interface PipelineDeadLettersOptions extends Omit<RecordTapOptions, 'topics' | 'take'> {
  /** The pipeline cluster, as it stands in `dlq.{cluster}.{node}`. */
  cluster: string
  keeper: Keeper
  /** Nodes whose topics have names of their own. */
  nodes?: readonly Pick<NodeSettings, 'node' | 'dlq'>[]
}

/**
 * Brings the dead records of a pipeline cluster in as letters, from all its DLQ and quarantine topics, also from those that come later. A
 * record is read until it is kept. One without a value erases: the letter with its key is removed. The topics stay as they are.
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
  /** Those that are being kept, or could not be yet. What erases them comes behind. */
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
          // It comes again before this does, unless it is somebody else's by now: then nobody would ever say that it was kept.
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

/** What is too large for the store is kept without its payload, and says where that is. */
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

/** From the name of a topic: `dlq.{cluster}.{node}`. */
function foundBy(cluster: string, topic: string): Found {
  const [kind, , node = ''] = topic.split('.')
  return { cluster, node, isQuarantine: kind === 'quarantine' }
}
