import { EventEmitter } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Group } from '../../../src/backends/kafka/group.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts'

type Metadata = { topics: Map<string, { partitionsCount: number }> }
type BeforeRound = (protocols: unknown, topics: unknown, known: Metadata) => Promise<unknown>

let joins = 0

/** A client whose answers come when a test says so. */
class FakeConsumer extends EventEmitter {
  readonly topics = { trackAll: () => {} }
  readonly asked: PromiseWithResolvers<Metadata>[] = []
  generationId = 0
  memberId = 'me'
  readonly #beforeRound: BeforeRound

  constructor({ protocolsMetadata }: { protocolsMetadata: BeforeRound }) {
    super()
    this.#beforeRound = protocolsMetadata
  }

  metadata(): Promise<Metadata> {
    const asked = Promise.withResolvers<Metadata>()
    this.asked.push(asked)
    return asked.promise
  }

  async joinGroup(): Promise<void> {
    joins += 1
    await this.begin(2)
    this.settle()
  }

  /** A round of joining, which the client also begins by itself when somebody else comes or goes. */
  begin(count: number): Promise<unknown> {
    return this.#beforeRound([], [], partitions(count))
  }

  settle(): void {
    this.generationId += 1
    this.emit('consumer:group:join', { assignments: [], isLeader: true })
  }

  async leaveGroup(): Promise<void> {}
  async close(): Promise<void> {}
}

function partitions(partitionsCount: number): Metadata {
  return { topics: new Map([['one', { partitionsCount }]]) }
}

describe('the member that leads a group looks for more partitions', () => {
  let clock: FakeClock
  let consumer: FakeConsumer
  let group: Group

  beforeEach(async () => {
    joins = 0
    clock = fakeClock()
    const url = '127.0.0.1:1'
    const cluster = new Cluster({ url, clock, timeoutMs: 5000, clientId: 'test' })
    cluster.consumer = (settings) => {
      consumer = new FakeConsumer(settings as unknown as { protocolsMetadata: BeforeRound })
      return consumer as unknown as ReturnType<Cluster['consumer']>
    }
    group = new Group({
      cluster,
      groupId: 'group',
      topics: ['one'],
      sessionMs: 6000,
      assigned: () => {},
      revoked: async () => {},
      lost: () => {},
      onError: () => {},
      lookEveryMs: 1000,
    })
    group.join()
    await clock.advance(1000)
    expect(consumer.asked).toHaveLength(1)
  })

  it('and joins anew when there are', async () => {
    consumer.asked[0]!.resolve(partitions(3))
    await clock.advance(0)
    expect(joins).toBe(2)
  })

  it('and again when there are none, or when the brokers are away', async () => {
    consumer.asked[0]!.resolve(partitions(2))
    await clock.advance(1000)
    consumer.asked[1]!.reject(new Error('away'))
    await clock.advance(1000)
    consumer.asked[2]!.resolve(partitions(3))
    await clock.advance(0)
    expect(joins).toBe(2)
  })

  it('and not any more once it has left, also if it has come back', async () => {
    const [asked] = consumer.asked
    const left = group.leave()
    group.join()
    asked!.resolve(partitions(3))
    await left
    await clock.advance(0)
    expect(joins).toBe(2)
  })

  it('and joins once when the group is being arranged anew already', async () => {
    const round = consumer.begin(2)
    consumer.asked[0]!.resolve(partitions(3))
    await round
    await clock.advance(0)
    expect(joins).toBe(1)
    consumer.settle()
    await clock.advance(1000)
    consumer.asked[1]!.resolve(partitions(3))
    await clock.advance(0)
    expect(joins).toBe(2)
  })
})
