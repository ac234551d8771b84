import {
  createAPI,
  kGetApi,
  Producer,
  produceV10,
  produceV11,
  produceV9,
  Writer,
  type API,
  type Callback,
  type CreateRecordsBatchOptions,
  type MessageRecord,
} from '@platformatic/kafka'
import { systemClock } from '../../clock/clock.ts'
import { batchOf } from './batch.ts'

type Options = Partial<CreateRecordsBatchOptions>

/** The client's own, but that records are put into bytes in our way. Whom it asks, what it counts and what it tries again is the client's. */
export class QuickProducer extends Producer {
  override [kGetApi]<A extends unknown[], R>(name: string, callback: Callback<API<A, R>>): void {
    super[kGetApi]<A, R>(name, (error, api) => {
      const quick = name === 'Produce' && quickApis.get(api?.version ?? 0)
      callback(error, quick ? (quick as unknown as API<A, R>) : api)
    })
  }
}

/** By version. What is asked looks the same in all of them; brokers that know none of them are asked in the client's own way. */
const quickApis = new Map(
  [produceV9, produceV10, produceV11].map(({ api: { key, version }, parseResponse }) => [
    version,
    createAPI<Parameters<typeof request>, unknown>(key, version, request, parseResponse),
  ]),
)

function request(
  acks: number,
  timeoutMs: number,
  records: readonly MessageRecord[],
  options: Options,
): Writer {
  const { transactionalId, sequences, producerId = -1n, producerEpoch = 0 } = options
  const sender = { producerId, producerEpoch, isTransactional: Boolean(transactionalId) }
  const nowMs = BigInt(systemClock.now())
  const topics = [...Map.groupBy(records, ({ topic }) => topic)]
  return Writer.create()
    .appendString(transactionalId)
    .appendInt16(acks)
    .appendInt32(timeoutMs)
    .appendArray(topics, (writer, [topic, ofTopic]) => {
      const parts = [...Map.groupBy(ofTopic, ({ partition = 0 }) => partition)]
      writer.appendString(topic).appendArray(parts, (part, [partition, all]) => {
        // Whatever is sent again is sent as it was.
        all[0]!.timestamp ??= nowMs
        const firstSequence = sequences?.getWithDefault(`${topic}:${partition}`, 0) ?? 0
        const batch = batchOf(all, { ...sender, firstSequence })
        part.appendInt32(partition)
        part.appendUnsignedVarInt(batch.length + 1).append(batch)
      })
    })
    .appendTaggedFields()
}
