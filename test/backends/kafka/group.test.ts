import { EventEmitter } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Group } from '../../../src/backends/kafka/group.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts'

type Metadata = { topics: Map<string, { partitionsCount: number }> }
type BeforeJoin = (protocols: unknown, topics: unknown, known: Metadata) => Promise<unknown>

let joins = 0

/** A client whose metadata requests are answered by the test. */
class FakeConsumer extends EventEmitter {
  readonly topics = { trackAll: () => {} }
  readonly requests: PromiseWithResolvers<Metadata>[] = []
  generationId = 0
  memberId = 'me'
  readonly #beforeJoin: BeforeJoin

  constructor({ protocolsMetadata }: { protocolsMetadata: BeforeJoin }) {
    super()
    this.#beforeJoin = protocolsMetadata
  }

  metadata(): Promise<Metadata> {
    const request = Promise.withResolvers<Metadata>()
    this.requests.push(request)
    return request.promise
  }

  async joinGroup(): Promise<void> {
    joins += 1
    await this.startRebalance(2)
    this.endRebalance()
  }

  /** Starts a rebalance, as the client does when other members join or leave. */
  startRebalance(count: number): Promise<unknown> {
    return this.#beforeJoin([], [], partitions(count))
  }

  endRebalance(): void {
    this.generationId += 1
    this.emit('consumer:group:join', { assignments: [], isLeader: true })
  }

  async leaveGroup(): Promise<void> {}
  async close(): Promise<void> {}
}

function partitions(partitionsCount: number): Metadata {
  return { topics: new Map([['one', { partitionsCount }]]) }
}

describe('the leader of a group checks for added partitions', () => {
  let clock: FakeClock
  let consumer: FakeConsumer
  let group: Group

  beforeEach(async () => {
    joins = 0
    clock = fakeClock()
    const url = '127.0.0.1:1'
    const cluster = new Cluster({ url, clock, timeoutMs: 5000, clientId: 'test' })
    cluster.consumer = (settings) => {
      consumer = new FakeConsumer(settings as unknown as { protocolsMetadata: BeforeJoin })
      return consumer as unknown as ReturnType<Cluster['consumer']>
    }
    group = new Group({
      cluster,
      groupId: 'group',
      topics: ['one'],
      sessionMs: 6000,
      onAssigned: () => {},
      onRevoked: async () => {},
      onLost: () => {},
      onError: () => {},
      checkPartitionsMs: 1000,
    })
    group.join()
    await clock.advance(1000)
    expect(consumer.requests).toHaveLength(1)
  })

  it('and rejoins when it finds some', async () => {
    consumer.requests[0]!.resolve(partitions(3))
    await clock.advance(0)
    expect(joins).toBe(2)
  })

  it('and checks again when it finds none or when the brokers are unreachable', async () => {
    consumer.requests[0]!.resolve(partitions(2))
    await clock.advance(1000)
    consumer.requests[1]!.reject(new Error('unreachable'))
    await clock.advance(1000)
    consumer.requests[2]!.resolve(partitions(3))
    await clock.advance(0)
    expect(joins).toBe(2)
  })

  it('and stops when it is closed', async () => {
    const closed = group.close()
    consumer.requests[0]!.resolve(partitions(3))
    await closed
    await clock.advance(5000)
    expect([joins, consumer.requests.length]).toEqual([1, 1])
  })

  it('and does not rejoin during a rebalance', async () => {
    const rebalance = consumer.startRebalance(2)
    consumer.requests[0]!.resolve(partitions(3))
    await rebalance
    await clock.advance(0)
    expect(joins).toBe(1)
    consumer.endRebalance()
    await clock.advance(1000)
    consumer.requests[1]!.resolve(partitions(3))
    await clock.advance(0)
    expect(joins).toBe(2)
  })
})
