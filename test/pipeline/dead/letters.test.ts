import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Captured } from '../../../src/capture/capture.ts'
import { pipelineLetterId } from '../../../src/pipeline/dead/capture.ts'
import { RedriveError } from '../../../src/errors.ts'
import {
  pipelineDeadLetters,
  type PipelineDeadLettersOptions,
} from '../../../src/pipeline/dead/letters.ts'
import { keyOfDead } from '../../../src/pipeline/dead/envelope.ts'
import { dlqTopicOf, quarantineTopicOf } from '../../../src/pipeline/graph/topics.ts'
import { makeTopics } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { inbox } from '../../taps/inbox.ts'
import { deadBench, putOf, removeTopic, sentMs, type DeadBench } from '../dead-records.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('pipelineDeadLetters', { timeout: 60_000 }, () => {
  let bench: DeadBench
  const taps: { stop(): Promise<void> }[] = []

  beforeEach(async () => {
    bench = await deadBench(url)
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    for (const topic of topicsOf('node-2')) await removeTopic(bench.cluster, topic)
    await bench.close()
  })

  const topicsOf = (node: string): string[] => {
    const place = { cluster: bench.name, node }
    return [dlqTopicOf(place), quarantineTopicOf(place)]
  }

  const started = async (
    keeper: Partial<PipelineDeadLettersOptions['keeper']>,
    more: Partial<PipelineDeadLettersOptions> = {},
  ): Promise<void> => {
    const tap = pipelineDeadLetters({
      url,
      cluster: bench.name,
      nodes: [bench.settings],
      groupId: `${bench.name}.tap`,
      lookEveryMs: 100,
      keeper: { keep: async () => {}, forget: async () => {}, ...keeper },
      ...more,
    })
    taps.push(tap)
    await tap.start()
  }

  it('stores dead records of named topics and of all that match the pattern', async () => {
    const kept = inbox<Captured>()
    await started({ keep: async (captured) => kept.put(captured) })
    await bench.dies([{ id: 'a', key: 'k', offset: 1 }])
    const first = await kept.next()
    expect(first).toMatchObject({ queue: 'node-1', source: { streamId: 'a', offset: '1' } })
    const topics = topicsOf('node-2')
    await makeTopics(bench.admin, topics)
    const put = putOf({ id: 'b', offset: 2, node: 'node-2' }, bench.settings, 0)
    for (const topic of topics) await bench.put(topic, [put])
    const both = [await kept.next(), await kept.next()]
    expect(both.map(({ queue }) => queue)).toEqual(['node-2', 'node-2'])
    // A dead record is one letter, in whichever topic it is found.
    expect(new Set(both.map(({ context }) => context.id)).size).toBe(1)
    expect(both.map(({ reason }) => reason)).toContain('replay-limit')
  })

  it('removes the letter of an erased record, after it was stored', async () => {
    const steps = inbox<string>()
    let fails = true
    const keep = async ({ context }: Captured): Promise<void> => {
      if (fails) {
        fails = false
        throw new Error('the store is away')
      }
      steps.put(`keep ${context.id}`)
    }
    await bench.dies([{ id: 'a', offset: 1 }])
    await bench.erase(1)
    await started({ keep, forget: async (id) => steps.put(`forget ${id}`) })
    const { inputTopic: topic } = bench.settings
    const dead = keyOfDead({ topic, partition: 0, offset: 1, timestampMs: sentMs })
    const id = pipelineLetterId(bench.name, dead.toString())
    expect([await steps.next(), await steps.next()]).toEqual([`keep ${id}`, `forget ${id}`])
  })

  it('removes a letter that it could not store but another process did', async () => {
    const topic = await bench.topic('four', 4)
    const settings = { ...bench.settings, dlq: { ...bench.settings.dlq, topic } }
    const puts = [0, 1, 2, 3].map((at) => putOf({ id: `s${at}`, offset: at }, settings, at))
    await bench.put(topic, puts)
    const tried = new Set<string>()
    const forgotten: string[] = []
    let isAway = true
    const keep = async ({ context }: Captured): Promise<void> => {
      tried.add(context.id!)
      if (isAway) throw new Error('the store is away')
    }
    const forget = async (id: string): Promise<unknown> => forgotten.push(id)
    await started({ keep, forget }, { nodes: [settings] })
    await expect.poll(() => tried.size).toBe(4)
    const kept = inbox<Captured>()
    await started({ keep: async (captured) => kept.put(captured) }, { nodes: [settings] })
    const { context } = await kept.next()
    isAway = false
    await taps.pop()!.stop()
    const messages = puts.map(({ key, partition }) => {
      const nothing = null as unknown as Buffer
      return { topic, key: Buffer.from(key!), value: nothing, partition: partition! }
    })
    await bench.producer.send({ messages, acks: -1 })
    await expect.poll(() => forgotten, { timeout: 30_000 }).toContain(context.id)
    await expect.poll(() => new Set(forgotten).size, { timeout: 30_000 }).toBe(4)
  })

  it('stores a record that is too large for the store without its payload, with its location', async () => {
    const kept = inbox<Captured>()
    const keep = async (captured: Captured): Promise<void> => {
      if (captured.payload.size > 0) throw new RedriveError('TOO_LARGE', 'too large')
      kept.put(captured)
    }
    await started({ keep })
    await bench.dies([{ id: 'a', offset: 1 }])
    const { payload } = await kept.next()
    expect(payload.reference).toBe(`kafka:${bench.settings.dlq.topic}:0:0`)
  })
})
