import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findProgram } from '../../scripts/servers/machine.ts'
import type { Stored } from '../../src/kafka/record.ts'
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
import { lineageIn } from '../../src/pipeline/dead/lineage.ts'
import {
  DlqConfigSchema,
  DlqMessageSchema,
} from '../../src/pipeline/proto/redrive/pipeline/v1/dlq_pb.ts'
import { aStream, writeStream } from '../../src/pipeline/stream.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import { redrive } from '../cli/run-cli.ts'
import { found, soak } from '../crash/pipeline/soak.ts'
import { pipelineBench, streamOf, type PipelineBench } from '../pipeline/pipeline-bench.ts'
import { lacksPrivate } from '../servers/private.ts'
import { backend } from '../servers/servers.ts'
import { quote } from './rows.ts'

const { url, missing } = backend('kafka')
const node = '0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d'

type NodeOf = GraphInput['graphs'][number]['nodes'][number]

describe.skipIf(missing)('a pipeline on Kafka', { timeout: 120_000 }, () => {
  let bench: PipelineBench
  let cluster: string
  let folder: string
  let events: PipelineEvent[]
  const pipelines: Pipeline[] = []

  beforeEach(() => {
    bench = pipelineBench(url)
    cluster = bench.name.replaceAll('_', '-')
    folder = mkdtempSync(join(tmpdir(), 'redrive-seed-'))
    events = []
  })

  afterEach(async () => {
    await Promise.all(pipelines.splice(0).map((one) => one.stop({ drainMs: 0 })))
    const topics = (await bench.admin.listTopics()).filter((topic) => topic.includes(cluster))
    if (topics.length > 0) await bench.admin.deleteTopics({ topics })
    await bench.close()
    rmSync(folder, { recursive: true, force: true })
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

  const started = async (
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

  const happened = (type: PipelineEvent['type'], count = 1): Promise<unknown> =>
    expect
      .poll(() => events.filter((event) => event.type === type).length, { timeout: 30_000 })
      .toBeGreaterThanOrEqual(count)
  const dead = async (topic = dlq()): Promise<(Envelope & { record: Stored })[]> =>
    (await bench.read(topic)).map((record) => ({ ...unseal(record.value)!, record }))
  const committed = async (): Promise<number> =>
    (await bench.committed(`redrive.${input()}`)).reduce((sum, offset) => sum + offset, 0)

  const failing =
    (error: Partial<Error> & { code?: unknown; status?: number }): Module =>
    () => {
      throw Object.assign(new Error(error.message ?? 'failed'), error)
    }

  describe(quote('P1'), () => {
    it('the topics of a node are there once it has started, named as said', async () => {
      await started(() => undefined)
      const topics = await bench.admin.listTopics()
      expect(topics).toEqual(
        expect.arrayContaining([
          input(),
          `dlq.${cluster}.${node}`,
          `quarantine.${cluster}.${node}`,
        ]),
      )
    })

    it('a node may have another topic', async () => {
      const topic = `dlq-of.${cluster}`
      await started(failing({ status: 400 }), { dlq_config: { topic } })
      await bench.put(input(), [{ value: streamOf('one') }])
      await happened('dead-lettered')
      expect(await dead(topic)).toHaveLength(1)
      expect(await bench.admin.listTopics()).not.toContain(dlq())
    })
  })

  describe(quote('P2'), () => {
    it.each<[string, Module, string, number]>([
      [
        'unreachable',
        failing({ message: '14 UNAVAILABLE: away', code: 14 }),
        'MODULE_UNAVAILABLE',
        3,
      ],
      ['timeout', () => new Promise(() => {}), 'TIMEOUT', 1],
      ['refused', failing({ code: 'ECONNREFUSED' }), 'CONNECTION_REFUSED', 3],
      ['repeated transient', failing({ status: 503 }), 'MODULE_UNAVAILABLE', 3],
    ])('%s → DLQ, once its retries are used up', async (kind, work, errorType, retryCount) => {
      const slow = kind === 'timeout' ? { timeout: 200, dlq_config: { max_retries: 1 } } : {}
      await started(work, slow)
      await bench.put(input(), [{ value: streamOf('one') }])
      await happened('dead-lettered')
      expect((await dead())[0]!.message).toMatchObject({ errorType, retryCount })
    })

    it('malformed and too many hops → DLQ at once, and what is behind goes on', async () => {
      await started(() => undefined, { max_hops: 3 })
      const tired = writeStream(aStream({ streamId: 'tired', hopCount: 3 }))
      const values = [Buffer.from('no stream'), tired, streamOf('good')]
      await bench.put(
        input(),
        values.map((value) => ({ value, partition: 0 })),
      )
      await happened('routed')
      await happened('dead-lettered', 2)
      const types = (await dead()).map(({ message }) => message.errorType)
      expect(types.toSorted()).toEqual(['MALFORMED', 'MAX_HOPS'])
      await expect.poll(committed).toBe(3)
    })

    it('success=false → not', async () => {
      await started(() => ({ success: false, error: 'no text in it' }))
      await bench.put(input(), [{ value: streamOf('one') }])
      await happened('logical-failure')
      expect(await dead()).toEqual([])
    })
  })

  describe(quote('P3'), () => {
    /** The eight fields as their numbers say, written by hand. */
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

    it('a message of the seed is read, and written as it was', () => {
      const message = fromBinary(DlqMessageSchema, seed)
      expect(message).toMatchObject(read)
      expect(Buffer.from(toBinary(DlqMessageSchema, message)).equals(seed)).toBe(true)
    })

    it('what a node writes is one that the seed can read', async () => {
      await started(failing({ status: 400, message: 'bad' }))
      const value = streamOf('one')
      await bench.put(input(), [{ value }])
      await happened('dead-lettered')
      const [{ record } = { record: undefined }] = await dead()
      expect(fromBinary(DlqMessageSchema, record!.value)).toMatchObject({
        stream: { streamId: 'one' },
        errorMessage: 'bad',
        failedNodeId: node,
        originalTopic: input(),
        originalOffset: 0n,
      })
    })

    it('what a config does not say has its default: enabled, 3 retries', () => {
      const place = { cluster: 'c', graph: 'g', node: 'n' }
      const nothing = dlqSettingsOf(create(DlqConfigSchema), place)
      expect(nothing).toMatchObject({ enabled: true, maxRetries: 3, topic: 'dlq.c.n' })
      const said = create(DlqConfigSchema, { enabled: false, maxRetries: 0 })
      const back = fromBinary(DlqConfigSchema, toBinary(DlqConfigSchema, said))
      expect(dlqSettingsOf(back, place)).toMatchObject({ enabled: false, maxRetries: 0 })
    })
  })

  describe(quote('P4'), () => {
    it('a record that waits for its retries holds up nobody, and is not committed past', async () => {
      const back = Promise.withResolvers<void>()
      await started(
        async ({ stream, attempt }) => {
          if (stream.streamId !== 'slow') return
          if (attempt === 1) throw Object.assign(new Error('14 UNAVAILABLE: away'), { code: 14 })
          await back.promise
        },
        { dlq_config: { retry_backoff: 100 } },
      )
      const others = Array.from({ length: 300 }, (_, n) => ({
        key: `${n}`,
        value: streamOf(`${n}`),
      }))
      await bench.put(input(), [{ key: 'slow', value: streamOf('slow') }, ...others])
      await happened('routed', 300)
      expect(await committed()).toBe(0)
      back.resolve()
      await expect.poll(committed).toBe(301)
      expect(await dead()).toEqual([])
    })
  })

  describe(quote('P5'), () => {
    it('the stream goes on with its document as it was, and says what happened', async () => {
      await started(() => ({ success: false, error: 'no text in it' }))
      await bench.put(input(), [{ key: 'k', value: streamOf('one', 'scan') }])
      await happened('logical-failure')
      const [record] = await bench.read(next())
      const stream = readStream(record!.value)!
      expect(stream.metadata).toMatchObject({
        history: [{ event: 'failed', nodeId: node, message: 'no text in it' }],
        streamError: { nodeId: node, message: 'no text in it' },
      })
      const { value } = stream.content as { value: { body: Uint8Array } }
      expect(Buffer.from(value.body).toString()).toBe('scan')
    })
  })

  describe(quote('P6'), () => {
    let isUp = false
    const flaky: Module = () => {
      if (!isUp) throw Object.assign(new Error('down'), { status: 400 })
    }
    beforeEach(() => {
      isUp = false
    })

    it('by command: unwraps, keeps key and headers, filters, limits, and sends nothing twice', async () => {
      await started(flaky)
      const value = streamOf('one')
      await bench.put(input(), [
        { key: 'k', value, headers: { trace: 'abc' } },
        { key: 'l', value: streamOf('two') },
      ])
      await happened('dead-lettered', 2)
      const config = join(folder, 'graph.json')
      writeFileSync(config, JSON.stringify(graphs()))
      const replay = (...args: string[]) =>
        redrive(['pipeline', 'replay', node, '--config', config, '--json', ...args])
      const dry = await replay('--dry-run')
      expect(JSON.parse(dry.out)).toMatchObject({ sent: 2, dryRun: true })
      isUp = true
      const some = await replay('--filter', 'key=k', '--limit', '1', '--rate', '100')
      expect(JSON.parse(some.out)).toMatchObject({ sent: 1, done: true })
      await happened('routed', 1)
      const [, , again] = await bench.read(input())
      expect(again!.key!.toString()).toBe('k')
      expect(again!.value.equals(value)).toBe(true)
      expect(again!.headers[0]!.map(String)).toEqual(['trace', 'abc'])
      expect(lineageIn(again!.headers)).toMatchObject({ reprocessed: 1 })
      expect(JSON.parse((await replay()).out)).toMatchObject({ sent: 1, passed: 1 })
      expect(JSON.parse((await replay()).out)).toMatchObject({ sent: 0 })
    })

    it('counts replays, and quarantines at the limit; its letter is parked', async () => {
      const pipeline = await started(flaky)
      const letters = await DeadLetterQueue.open('memory:')
      const tap = pipeline.deadLetters(letters)
      await tap.start()
      await bench.put(input(), [{ value: streamOf('one') }])
      for (const replay of [1, 2, 3]) {
        await happened('dead-lettered', replay)
        expect(await pipeline.replay(node)).toMatchObject({ sent: 1 })
      }
      await happened('quarantined')
      const [spent] = await dead(`quarantine.${cluster}.${node}`)
      expect(spent!.message).toMatchObject({ dlqReprocessCount: 3, quarantined: true })
      const parked = async (): Promise<unknown[]> =>
        (await letters.find({ queue: node, state: ['parked'] })).items.map(({ reason }) => reason)
      await expect.poll(parked).toContain('replay-limit')
      await tap.stop()
      await letters.close()
    })

    it('gives a stream that went round in circles its hops back, and says so', async () => {
      const pipeline = await started(() => undefined, { max_hops: 2 })
      const value = writeStream(aStream({ streamId: 'round', hopCount: 2 }))
      await bench.put(input(), [{ value }])
      await happened('dead-lettered')
      await pipeline.replay(node)
      await happened('routed')
      const stream = readStream((await bench.read(next()))[0]!.value)!
      expect(stream.hopCount).toBe(1)
      expect(stream.metadata!.history[0]).toMatchObject({ event: 'replayed', nodeId: node })
    })
  })

  describe(quote('P7'), () => {
    const rules = join(import.meta.dirname, '../../ops/prometheus')
    const promtool = findProgram('promtool')

    it('a node says how many dead records it has, of all time and now, with its label', async () => {
      const pipeline = await started(failing({ status: 400 }))
      await bench.put(input(), [{ value: streamOf('one') }, { value: streamOf('two') }])
      await happened('dead-lettered', 2)
      const text = async (): Promise<string> => pipeline.metrics()
      const depth = new RegExp(`^pipestream_dlq_depth\\{.*node_id="${node}".*\\} 2$`, 'm')
      await expect.poll(text).toMatch(depth)
      const total = new RegExp(`^pipestream_dlq_messages_total\\{.*node_id="${node}".*\\} 2$`, 'm')
      expect(await text()).toMatch(total)
    })

    it.skipIf(!promtool)('the two rules fire for it', () => {
      const args = ['test', 'rules', 'redrive-pipeline.test.yaml']
      expect(execFileSync(promtool!, args, { cwd: rules, encoding: 'utf8' })).toContain('SUCCESS')
    })
  })

  describe(quote('P8'), () => {
    const lacking = lacksPrivate.kafka()
    it.skipIf(lacking)('nothing is lost while nodes come, go, freeze and are killed', async () => {
      const verdict = await soak({
        records: 3000,
        poisons: 2,
        consumers: 3,
        seed: 5,
        workMs: 10,
        transactional: false,
        restarts: 0,
        limitSeconds: 100,
      })
      expect(found(verdict), verdict.examples.join('\n')).toEqual([])
      expect(verdict.routed + verdict.dead).toBe(3000)
      expect(verdict.kills).toBeGreaterThan(0)
    })
  })

  describe(quote('P9'), () => {
    it('a large document is put away, and the next node gets it by its reference', async () => {
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

    it('what is known of a key is erased: from the topic, and from the letters', async () => {
      const pipeline = await started(failing({ status: 400 }))
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
      // The tap may be faster with the letter: it hears of the erasure from the topic.
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
