import { writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../src/backends/kafka/record.ts'
import {
  documentFolder,
  dlqSettingsOf,
  graphsOf,
  Pipeline,
  readStream,
  unseal,
  type Envelope,
  type GraphInput,
  type Module,
  type PipelineEvent,
  type PipelineOptions,
} from '../../src/pipeline/index.ts'
import { PipelineAdmin } from '../../src/pipeline/admin.ts'
import { lineageIn } from '../../src/pipeline/dead/lineage.ts'
import {
  DlqConfigSchema,
  DlqMessageSchema,
} from '../../src/pipeline/proto/redrive/pipeline/v1/dlq_pb.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { PrometheusMetrics, startMetricsServer } from '../../src/observers/metrics/index.ts'
import { openPipeline } from '../../src/cli/open-pipeline.ts'
import { pipelineBench, streamOf, type PipelineBench } from '../pipeline/pipeline-bench.ts'
import { aFolder } from '../folders.ts'
import { aServer } from '../server/a-server.ts'
import { backend } from '../servers/servers.ts'
import { clause, row } from './rows.ts'

const { url, missing } = backend('kafka')
const node = '0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d'

type NodeOf = GraphInput['graphs'][number]['nodes'][number]

describe.skipIf(missing)('a pipeline on Kafka', { timeout: 120_000 }, () => {
  let bench: PipelineBench
  let cluster: string
  const folder = aFolder('pipeline')
  let events: PipelineEvent[]
  const pipelines: Pipeline[] = []

  beforeEach(() => {
    bench = pipelineBench(url)
    cluster = bench.name.replaceAll('_', '-')
    events = []
  })

  afterEach(async () => {
    await Promise.all(pipelines.splice(0).map((one) => one.stop({ drainMs: 0 })))
    const topics = (await bench.admin.listTopics()).filter((topic) => topic.includes(cluster))
    if (topics.length > 0) await bench.admin.deleteTopics({ topics })
    await bench.close()
  })

  const graphs = (first: Partial<NodeOf> = {}): GraphInput => ({
    cluster_id: cluster,
    kafka: `kafka://${url}`,
    graphs: [
      {
        graph_id: 'docs',
        nodes: [
          {
            node_id: node,
            kafka_partitions: 1,
            module: { function: 'work' },
            ...first,
            dlq_config: { retry_backoff: 10, ...first.dlq_config },
          },
          { node_id: 'next', kafka_partitions: 1, module: { function: 'next' } },
        ],
        edges: [{ from: node, to: 'next' }],
      },
    ],
  })

  const startPipeline = async (
    work: Module,
    first: Partial<NodeOf> = {},
    options: PipelineOptions = {},
  ): Promise<Pipeline> => {
    const pipeline = await Pipeline.open(graphsOf(graphs(first)), {
      functions: { work, next: () => undefined },
      nodes: [node],
      onEvent: (event) => events.push(event),
      ...options,
    })
    pipelines.push(pipeline)
    await pipeline.start()
    return pipeline
  }

  const input = (): string => `pipestream.${cluster}.docs.${node}`
  const dlq = (): string => `dlq.${cluster}.${node}`
  const next = (): string => `pipestream.${cluster}.docs.next`

  const waitForEvents = (type: PipelineEvent['type'], count = 1): Promise<unknown> =>
    expect
      .poll(() => events.filter((event) => event.type === type).length, { timeout: 30_000 })
      .toBeGreaterThanOrEqual(count)
  const dead = async (topic = dlq()): Promise<(Envelope & { record: StoredRecord })[]> =>
    (await bench.read(topic)).map((record) => ({ ...unseal(record.value)!, record }))
  const committed = async (): Promise<number> =>
    (await bench.committed(`redrive.${input()}`)).reduce((sum, offset) => sum + offset, 0)

  const failing =
    (error: Partial<Error> & { code?: unknown; status?: number }): Module =>
    () => {
      throw Object.assign(new Error(error.message ?? 'failed'), error)
    }

  describe(row('P1'), () => {
    it(clause('P1', 'one topic per node dlq.{cluster_id}.{node-uuid}'), async () => {
      await startPipeline(failing({ status: 400 }))
      await bench.put(input(), [{ value: streamOf('one') }])
      await waitForEvents('dead-lettered')
      expect(await dead(`dlq.${cluster}.${node}`)).toHaveLength(1)
    })

    it(clause('P1', 'created when missing'), async () => {
      const own = [input(), `dlq.${cluster}.${node}`, `quarantine.${cluster}.${node}`]
      const before = await bench.admin.listTopics()
      expect(before.filter((topic) => own.includes(topic))).toEqual([])
      await startPipeline(() => undefined)
      expect(await bench.admin.listTopics()).toEqual(expect.arrayContaining(own))
    })

    it(clause('P1', 'override per node'), async () => {
      const topic = `dlq-of.${cluster}`
      await startPipeline(failing({ status: 400 }), { dlq_config: { topic } })
      await bench.put(input(), [{ value: streamOf('one') }])
      await waitForEvents('dead-lettered')
      expect(await dead(topic)).toHaveLength(1)
      expect(await bench.admin.listTopics()).not.toContain(dlq())
    })
  })

  describe(row('P2'), () => {
    /** The dead record of a stream that this module failed. */
    const deadOf = async (work: Module, first: Partial<NodeOf> = {}): Promise<object> => {
      await startPipeline(work, first)
      await bench.put(input(), [{ value: streamOf('one') }])
      await waitForEvents('dead-lettered')
      return (await dead())[0]!.message
    }

    it(clause('P2', 'refused → DLQ'), async () => {
      // The port of a closed server refuses connections.
      const server = createServer()
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      await new Promise((resolve) => server.close(resolve))
      const module = { http: `http://127.0.0.1:${port}/` }
      expect(await deadOf(() => undefined, { module })).toMatchObject({
        errorType: 'CONNECTION_REFUSED',
        retryCount: 3,
      })
    })

    it(clause('P2', 'repeated transient → DLQ'), async () => {
      const busy = failing({ status: 503 })
      expect(await deadOf(busy)).toMatchObject({ errorType: 'MODULE_UNAVAILABLE', retryCount: 3 })
      expect(events.filter(({ type }) => type === 'retry')).toHaveLength(3)
    })

    it(clause('P2', 'service discovery down counts as unreachable'), async () => {
      // No name server knows this name.
      const module = { http: 'http://module.invalid/' }
      expect(await deadOf(() => undefined, { module })).toMatchObject({
        errorType: 'MODULE_UNAVAILABLE',
        retryCount: 3,
      })
    })
  })

  describe(row('P3'), () => {
    /** The eight fields by their numbers, written by hand. */
    const seed = Buffer.concat([
      Buffer.from([0x0a, 5, 0x0a, 3]),
      Buffer.from('one'), // 1: PipeStream { 1: "one" }
      Buffer.from([0x12, 7]),
      Buffer.from('TIMEOUT'), // 2
      Buffer.from([0x1a, 4]),
      Buffer.from('late'), // 3
      Buffer.from([0x22, 2, 0x08, 60]), // 4: Timestamp { 1: 60 }
      Buffer.from([0x28, 3]), // 5
      Buffer.from([0x32, 4]),
      Buffer.from('node'), // 6
      Buffer.from([0x3a, 2]),
      Buffer.from('in'), // 7
      Buffer.from([0x40, 42]), // 8
    ])
    const read = {
      stream: { streamId: 'one' },
      errorType: 'TIMEOUT',
      errorMessage: 'late',
      failedAt: { seconds: 60n },
      retryCount: 3,
      failedNodeId: 'node',
      originalTopic: 'in',
      originalOffset: 42n,
    }

    describe(
      clause('P3', "DlqMessage and DlqConfig in protobuf, wire-compatible with the seed's fields"),
      () => {
        it('a message of the design is read and written unchanged', () => {
          const message = fromBinary(DlqMessageSchema, seed)
          expect(message).toMatchObject(read)
          expect(Buffer.from(toBinary(DlqMessageSchema, message)).equals(seed)).toBe(true)
        })

        it('a message of a node can be read by the design', async () => {
          await startPipeline(failing({ status: 400, message: 'bad' }))
          const value = streamOf('one')
          await bench.put(input(), [{ value }])
          await waitForEvents('dead-lettered')
          const [{ record } = { record: undefined }] = await dead()
          expect(fromBinary(DlqMessageSchema, record!.value)).toMatchObject({
            stream: { streamId: 'one' },
            errorMessage: 'bad',
            failedNodeId: node,
            originalTopic: input(),
            originalOffset: 0n,
          })
        })

        it('a config of the design is read and written unchanged', () => {
          const config = Buffer.concat([
            Buffer.from([0x08, 1, 0x12, 4]), // 1: enabled
            Buffer.from('dead'), // 2: topic
            Buffer.from([0x18, 5]), // 3: max_retries
            Buffer.from([0x22, 2, 0x08, 2]), // 4: Duration { 1: 2 }
          ])
          const message = fromBinary(DlqConfigSchema, config)
          expect(message).toMatchObject({
            enabled: true,
            topic: 'dead',
            maxRetries: 5,
            retryBackoff: { seconds: 2n },
          })
          expect(Buffer.from(toBinary(DlqConfigSchema, message)).equals(config)).toBe(true)
        })
      },
    )

    it(clause('P3', 'defaults applied explicitly (enabled true, 3 retries)'), () => {
      const place = { cluster: 'c', graph: 'g', node: 'n' }
      const nothing = dlqSettingsOf(create(DlqConfigSchema), place)
      expect(nothing).toMatchObject({ enabled: true, maxRetries: 3, topic: 'dlq.c.n' })
      const explicit = create(DlqConfigSchema, { enabled: false, maxRetries: 0 })
      const back = fromBinary(DlqConfigSchema, toBinary(DlqConfigSchema, explicit))
      expect(dlqSettingsOf(back, place)).toMatchObject({ enabled: false, maxRetries: 0 })
    })
  })

  describe(row('P4'), () => {
    it(
      clause('P4', 'DLQ publish awaited from the broker before the offset is committed'),
      async () => {
        // The broker refuses records of this size, until its limit is raised.
        const topic = dlq()
        const config = { name: 'max.message.bytes', value: '1000' }
        const configs = [config, { name: 'cleanup.policy', value: 'compact' }]
        await bench.admin.createTopics({ topics: [topic], partitions: 1, replicas: 1, configs })
        await startPipeline(failing({ status: 400 }))
        const large = 'x'.repeat(5000)
        await bench.put(
          input(),
          ['one', 'two'].map((id) => ({ value: streamOf(id, large) })),
        )
        await waitForEvents('publish-failed')
        expect(await committed()).toBe(0)
        expect(events.filter(({ type }) => type === 'dead-lettered')).toEqual([])
        await bench.admin.incrementalAlterConfigs({
          resources: [
            {
              resourceType: ConfigResourceTypes.TOPIC,
              resourceName: topic,
              configs: [
                {
                  ...config,
                  value: '1000000',
                  configOperation: IncrementalAlterConfigOperationTypes.SET,
                },
              ],
            },
          ],
        })
        await waitForEvents('dead-lettered', 2)
        await expect.poll(committed).toBe(2)
        expect(await dead()).toHaveLength(2)
      },
    )
  })

  describe(row('P6'), () => {
    let isUp = false
    const flaky: Module = () => {
      if (!isUp) throw Object.assign(new Error('down'), { status: 400 })
    }
    beforeEach(() => {
      isUp = false
    })

    /** Starts the node, lets these streams die, and lets the module succeed afterwards. */
    const killStreams = async (
      records: { key?: string; value: Buffer; headers?: Record<string, string> }[],
      options: PipelineOptions = {},
    ): Promise<Pipeline> => {
      const pipeline = await startPipeline(flaky, {}, options)
      await bench.put(input(), records)
      await waitForEvents('dead-lettered', records.length)
      isUp = true
      return pipeline
    }
    const streams = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: streamOf(`s${n}`) }))

    it(clause('P6', 'by POST /admin/dlq/{nodeId}/replay'), async () => {
      await killStreams(streams(2))
      const pipeline = new PipelineAdmin({ graphs: graphsOf(graphs()), cluster: bench.cluster })
      const server = await aServer({}, {}, { pipeline })
      try {
        const replay = async (body: object): Promise<object> => {
          const response = await fetch(`${server.url}/admin/dlq/${node}/replay`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${await server.token({ role: 'operator' })}`,
              'content-type': 'application/json',
            },
            body: JSON.stringify(body),
          })
          expect(response.status).toBe(200)
          return (await response.json()) as object
        }
        expect(await replay({ dryRun: true })).toMatchObject({ sent: 2, dryRun: true })
        const some = { filter: { key: 'k1' }, limit: 1, rate: 100 }
        expect(await replay(some)).toMatchObject({ sent: 1, done: true })
        await waitForEvents('routed', 1)
        expect(await replay({})).toMatchObject({ sent: 1, passed: 1, done: true })
      } finally {
        await server.close()
        await pipeline.close()
      }
    })

    it(clause('P6', 'reprocess count'), async () => {
      const pipeline = await startPipeline(flaky)
      await bench.put(input(), streams(1))
      await waitForEvents('dead-lettered')
      await pipeline.replay(node)
      await waitForEvents('dead-lettered', 2)
      const [, again] = await bench.read(input())
      expect(lineageIn(again!.headers)).toMatchObject({ reprocessed: 1 })
      const counts = (await dead()).map(({ message }) => message.dlqReprocessCount)
      expect(counts).toEqual([0, 1])
    })

    it(clause('P6', 'quarantine at the limit'), async () => {
      const pipeline = await startPipeline(flaky)
      const letters = await DeadLetterQueue.open('memory:')
      const tap = pipeline.deadLetters(letters)
      await tap.start()
      await bench.put(input(), [{ value: streamOf('one') }])
      for (const replay of [1, 2, 3]) {
        await waitForEvents('dead-lettered', replay)
        expect(await pipeline.replay(node)).toMatchObject({ sent: 1 })
      }
      await waitForEvents('quarantined')
      const [spent] = await dead(`quarantine.${cluster}.${node}`)
      expect(spent!.message).toMatchObject({ dlqReprocessCount: 3, quarantined: true })
      const parked = async (): Promise<unknown[]> =>
        (await letters.find({ queue: node, state: ['parked'] })).items.map(({ reason }) => reason)
      await expect.poll(parked).toContain('replay-limit')
      await tap.stop()
      await letters.close()
    })
  })

  describe(clause('P7', 'served over HTTP'), () => {
    const dead = (name: string): RegExp =>
      new RegExp(`^pipestream_dlq_${name}\\{.*node_id="${node}".*\\} 2$`, 'm')

    it('by the process that runs the nodes', async () => {
      const pipeline = await startPipeline(failing({ status: 400 }))
      await bench.put(input(), [{ value: streamOf('one') }, { value: streamOf('two') }])
      await waitForEvents('dead-lettered', 2)
      const metrics = new PrometheusMetrics().include(() => pipeline.metrics())
      await using server = await startMetricsServer({ port: 0, text: () => metrics.text() })
      const response = async (): Promise<string> =>
        (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text()
      await expect.poll(response).toMatch(dead('depth'))
      expect(await response()).toMatch(dead('messages_total'))
    })

    it('by the server, which measures the dead records of a graph', async () => {
      await startPipeline(failing({ status: 400 }))
      await bench.put(input(), [{ value: streamOf('one') }, { value: streamOf('two') }])
      await waitForEvents('dead-lettered', 2)
      const config = join(folder, 'graph.yaml')
      writeFileSync(config, JSON.stringify(graphs()))
      const pipeline = await openPipeline({ option: '--pipeline', file: config, kafka: url })
      const server = await aServer()
      server.metrics.include(() => pipeline.metrics())
      const client = await server.client()
      await expect.poll(() => client.scrapeMetrics()).toMatch(dead('depth'))
      await server.close()
      await pipeline.close()
    })
  })

  describe(row('P9'), () => {
    it(clause('P9', 'large documents by reference'), async () => {
      const documents = documentFolder({ path: folder })
      const large = 'x'.repeat(700_000)
      const got = Promise.withResolvers<number>()
      const pipeline = await Pipeline.open(graphsOf(graphs()), {
        functions: {
          work: () => ({ success: true, document: { body: Buffer.from(large) } }),
          next: ({ document }) => got.resolve(document!.body.byteLength),
        },
        documents,
      })
      pipelines.push(pipeline)
      await pipeline.start()
      await bench.put(input(), [{ value: streamOf('one') }])
      expect(await got.promise).toBe(700_000)
      const [record] = await bench.read(next())
      expect(record!.value.byteLength).toBeLessThan(1000)
      expect(readStream(record!.value)!.content.case).toBe('documentRef')
    })

    it(clause('P9', 'payload removal by key (right to be forgotten)'), async () => {
      const pipeline = await startPipeline(failing({ status: 400 }))
      const letters = await DeadLetterQueue.open('memory:')
      const tap = pipeline.deadLetters(letters)
      await tap.start()
      await bench.put(input(), [
        { key: 'ann', value: streamOf('one') },
        { key: 'bob', value: streamOf('two') },
      ])
      const count = async (): Promise<number> => (await letters.find({ queue: node })).items.length
      await expect.poll(count).toBe(2)
      const who = { by: 'privacy officer', reason: 'asked for', dlq: letters }
      const report = await pipeline.erase({ recordKey: 'ann' }, who)
      // The tap may store the letter first: it reads the erasure from the topic.
      expect(report).toMatchObject({ records: 1, leased: 0 })
      expect(await count()).toBe(1)
      const last = new Map((await bench.read(dlq())).map(({ key, value }) => [String(key), value]))
      expect([...last.values()].filter((value) => value.length > 0)).toHaveLength(1)
      expect(await pipeline.replay(node)).toMatchObject({ sent: 1 })
      await tap.stop()
      await letters.close()
    })
  })
})
