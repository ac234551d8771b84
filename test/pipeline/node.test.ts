import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../src/backends/kafka/record.ts'
import { unseal } from '../../src/pipeline/dead/envelope.ts'
import type { PipelineEvent } from '../../src/pipeline/events.ts'
import { withLineage } from '../../src/pipeline/dead/lineage.ts'
import type { Module } from '../../src/pipeline/modules/module.ts'
import { PipelineNode, type PipelineNodeOptions } from '../../src/pipeline/node.ts'
import type { NodeInput } from '../../src/pipeline/graph/settings.ts'
import { aStream, readStream, writeStream } from '../../src/pipeline/stream.ts'
import { backend } from '../servers/servers.ts'
import { pipelineBench, streamOf, type PipelineBench } from './pipeline-bench.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('PipelineNode', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  let events: PipelineEvent[]
  const nodes: PipelineNode[] = []

  beforeEach(() => {
    bench = pipelineBench(url)
    events = []
  })

  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.stop({ drainMs: 0 })))
    await bench.close()
  })

  const input = (): string => `${bench.name}.in`
  const next = (): string => `${bench.name}.next`
  const dlq = (): string => `${bench.name}.dead`
  const quarantine = (): string => `${bench.name}.quarantine`

  const started = async (
    module: Module,
    node: Partial<NodeInput> = {},
    more: Partial<PipelineNodeOptions> = {},
  ): Promise<PipelineNode> => {
    const made = new PipelineNode({
      url,
      node: {
        cluster: 'test',
        graph: 'documents',
        node: 'parser',
        inputTopic: input(),
        partitions: 2,
        next: [{ to: 'chunker', topic: next(), maxHops: 0 }],
        ...node,
        dlq: {
          topic: dlq(),
          quarantineTopic: quarantine(),
          retryBackoffMs: 1,
          ...node.dlq,
        },
      },
      module,
      groupId: `${bench.name}.group`,
      onEvent: (event) => events.push(event),
      ...more,
    })
    nodes.push(made)
    await bench.topic('next')
    await made.start()
    return made
  }

  const happened = (type: PipelineEvent['type'], count = 1): Promise<unknown> =>
    expect
      .poll(() => events.filter((event) => event.type === type).length)
      .toBeGreaterThanOrEqual(count)

  const dead = async (topic = dlq()) =>
    (await bench.read(topic)).map((record) => ({ record, ...unseal(record.value)! }))

  const headersOf = ({ headers }: StoredRecord): Record<string, string> =>
    Object.fromEntries(headers.map(([name, value]) => [name.toString(), String(value)]))

  it('sends the result of its module to the next node, with key, headers and history', async () => {
    await started(({ document }) => ({
      success: true,
      document: { body: Buffer.from(Buffer.from(document!.body).toString().toUpperCase()) },
    }))
    await bench.put(input(), [
      { key: 'a', value: streamOf('one', 'text'), headers: { traceparent: '00-1-2-01' } },
    ])
    await happened('routed')
    const [record] = await bench.read(next())
    const stream = readStream(record!.value)!
    expect(record!.key!.toString()).toBe('a')
    expect(headersOf(record!)).toEqual({ traceparent: '00-1-2-01' })
    expect(stream).toMatchObject({
      streamId: 'one',
      hopCount: 1,
      processingPath: ['parser'],
      currentNodeId: 'chunker',
    })
    expect(Buffer.from((stream.content.value as { body: Uint8Array }).body).toString()).toBe('TEXT')
    expect(stream.metadata!.history).toMatchObject([{ nodeId: 'parser', event: 'processed' }])
    expect(await bench.read(dlq())).toEqual([])
  })

  it('retries transient failures, and dead-letters after the last, byte for byte', async () => {
    const calls: number[] = []
    await started(({ attempt }) => {
      calls.push(attempt)
      throw Object.assign(new Error('14 UNAVAILABLE: no connection'), { code: 14 })
    })
    const value = streamOf('one')
    await bench.put(input(), [{ key: 'k', value, headers: { a: 'b' } }])
    await happened('dead-lettered')
    expect(calls).toEqual([1, 2, 3, 4])
    const [found] = await dead()
    expect(Buffer.compare(found!.value, value)).toBe(0)
    expect(found!.isStream).toBe(true)
    expect(found!.message).toMatchObject({
      errorType: 'MODULE_UNAVAILABLE',
      errorMessage: '14 UNAVAILABLE: no connection',
      retryCount: 3,
      failedNodeId: 'parser',
      originalTopic: input(),
      originalOffset: 0n,
      clusterId: 'test',
      graphId: 'documents',
      dlqReprocessCount: 0,
      quarantined: false,
    })
    expect(Buffer.from(found!.message.originalKey!).toString()).toBe('k')
    expect(found!.message.originalHeaders.map(({ name }) => Buffer.from(name).toString())).toEqual([
      'a',
    ])
    expect(headersOf(found!.record)).toEqual({ 'redrive-error-type': 'MODULE_UNAVAILABLE' })
    expect(await bench.read(next())).toEqual([])
    await expect.poll(() => bench.committed(`${bench.name}.group`)).toContain(1)
  })

  it('does not retry if that cannot help', async () => {
    let calls = 0
    await started(() => {
      calls += 1
      throw Object.assign(new Error('3 INVALID_ARGUMENT: no such field'), { code: 3 })
    })
    await bench.put(input(), [{ value: streamOf('one') }])
    await happened('dead-lettered')
    expect(calls).toBe(1)
    expect((await dead())[0]!.message).toMatchObject({
      errorType: 'INVALID_ARGUMENT',
      retryCount: 0,
    })
  })

  it('calls once without retries', async () => {
    let calls = 0
    await started(
      () => {
        calls += 1
        throw new Error('connect ECONNREFUSED 127.0.0.1:1')
      },
      { dlq: { maxRetries: 0 } },
    )
    await bench.put(input(), [{ value: streamOf('one') }])
    await happened('dead-lettered')
    expect(calls).toBe(1)
    expect((await dead())[0]!.message.errorType).toBe('CONNECTION_REFUSED')
  })

  it('gives up on a module that does not answer, while others continue', async () => {
    await started(
      ({ stream, signal }) =>
        stream.streamId === 'slow'
          ? new Promise((_, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason as Error)),
            )
          : undefined,
      { timeoutMs: 300, dlq: { maxRetries: 1 }, partitions: 1 },
    )
    await bench.put(input(), [
      { key: 'slow', value: streamOf('slow') },
      ...Array.from({ length: 50 }, (_, n) => ({ key: `${n}`, value: streamOf(`s${n}`) })),
    ])
    await happened('routed', 50)
    expect(events.some(({ type }) => type === 'dead-lettered')).toBe(false)
    await happened('dead-lettered')
    expect((await dead())[0]!.message).toMatchObject({ errorType: 'TIMEOUT', retryCount: 1 })
  })

  it('passes on a document that a module rejects, unchanged and marked in the stream', async () => {
    let calls = 0
    await started(() => {
      calls += 1
      return { success: false, error: "couldn't parse this PDF" }
    })
    await bench.put(input(), [{ value: streamOf('one', 'as it came') }])
    await happened('logical-failure')
    const stream = readStream((await bench.read(next()))[0]!.value)!
    expect(stream.metadata).toMatchObject({
      streamError: { nodeId: 'parser', message: "couldn't parse this PDF" },
      history: [{ event: 'failed', nodeId: 'parser', message: "couldn't parse this PDF" }],
    })
    expect(Buffer.from((stream.content.value as { body: Uint8Array }).body).toString()).toBe(
      'as it came',
    )
    expect(calls).toBe(1)
    expect(await bench.read(dlq())).toEqual([])
  })

  it('dead-letters a document that a module rejects if configured so', async () => {
    await started(() => ({ success: false, error: 'no' }), {
      dlq: { deadLetterLogicalFailures: true },
    })
    await bench.put(input(), [{ value: streamOf('one') }])
    await happened('dead-lettered')
    expect((await dead())[0]!.message.errorType).toBe('LOGICAL_FAILURE')
  })

  it('stores a record that is not a stream raw, and continues', async () => {
    await started(() => undefined, { partitions: 1 })
    const bytes = Buffer.from([0xff, 0x00, 0x42])
    await bench.put(input(), [
      { value: bytes, partition: 0 },
      { value: Buffer.alloc(0), partition: 0 },
      { value: streamOf('good'), partition: 0 },
    ])
    await happened('routed')
    await happened('dead-lettered', 2)
    const found = await dead()
    expect(found.map(({ message }) => message.errorType)).toEqual(['MALFORMED', 'MALFORMED'])
    const values = found.map(({ value }) => Buffer.from(value).toString('hex'))
    expect(values.toSorted()).toEqual(['', 'ff0042'])
    expect(found.every(({ isStream }) => !isStream)).toBe(true)
    await expect.poll(() => bench.committed(`${bench.name}.group`)).toEqual([3])
  })

  it('dead-letters a stream that passed too many nodes', async () => {
    let calls = 0
    await started(() => void calls++, { maxHops: 3 })
    const stream = aStream({ streamId: 'round', hopCount: 3, processingPath: ['a', 'b', 'a'] })
    await bench.put(input(), [{ value: writeStream(stream) }])
    await happened('dead-lettered')
    expect(calls).toBe(0)
    const [found] = await dead()
    expect(found!.message.errorType).toBe('MAX_HOPS')
    expect(found!.message.errorMessage).toContain('a → b → a')
  })

  it.each([false, true])(
    'dead-letters a result that is too large for the next topic, and continues (transactional: %s)',
    async (transactional) => {
      const calls: string[] = []
      await started(
        ({ stream: { streamId } }) => {
          calls.push(streamId)
          if (!streamId.startsWith('big')) return undefined
          return { success: true, document: { body: Buffer.alloc(2_000_000) } }
        },
        { concurrency: 2, partitions: 1 },
        { transactional },
      )
      const ids = ['big1', 's1', 'big2', 's2', 's3']
      await bench.put(
        input(),
        ids.map((id) => ({ key: id, value: streamOf(id) })),
      )
      await happened('routed', 3)
      await happened('dead-lettered', 2)
      const found = await dead()
      expect(found.map(({ message }) => message.errorType)).toEqual(['TOO_LARGE', 'TOO_LARGE'])
      expect(found[0]!.message.errorMessage).toContain(`exceeds the maximum size of ${next()}`)
      expect(found.map(({ value }) => readStream(value)!.streamId).toSorted()).toEqual([
        'big1',
        'big2',
      ])
      const routed = (await bench.read(next())).map(({ value }) => readStream(value)!.streamId)
      expect(routed.toSorted()).toEqual(['s1', 's2', 's3'])
      expect(calls.toSorted()).toEqual(ids.toSorted())
      await expect.poll(() => bench.committed(`${bench.name}.group`)).toEqual([5])
    },
  )

  it.each<[string, Module, Partial<NodeInput>, Buffer]>([
    [
      'a body that is a string',
      () => ({ success: true, document: { body: 'text' as unknown as Uint8Array } }),
      {},
      streamOf('one'),
    ],
    [
      'a count of nodes that is at its end',
      () => undefined,
      { maxHops: 0 },
      writeStream(aStream({ streamId: 'one', hopCount: 2 ** 31 - 1 })),
    ],
  ])('dead-letters a result that cannot be encoded: %s', async (_, module, node, value) => {
    let calls = 0
    const counted: Module = (call) => {
      calls += 1
      return module(call)
    }
    await started(counted, node)
    await bench.put(input(), [{ value }])
    await happened('dead-lettered')
    expect(calls).toBe(1)
    expect((await dead())[0]!.message.errorType).toBe('UNWRITABLE')
  })

  it('dead-letters without a run a stream whose document is in an unknown store', async () => {
    let calls = 0
    await started(() => void calls++)
    const content = {
      case: 'documentRef',
      value: { location: 'file:elsewhere', size: 5n },
    } as const
    await bench.put(input(), [{ value: writeStream(aStream({ streamId: 'one', content })) }])
    await happened('dead-lettered')
    expect(calls).toBe(0)
    expect((await dead())[0]!.message).toMatchObject({
      errorType: 'DOCUMENT_UNAVAILABLE',
      errorMessage: expect.stringContaining('file:elsewhere'),
    })
  })

  it('quarantines a new failure after the last replay, and preserves the first failure', async () => {
    await started(() => {
      throw Object.assign(new Error('bad'), { status: 400 })
    })
    const first = Date.parse('2026-01-02T03:04:05.000Z')
    const headers = (reprocessed: number): Record<string, string> =>
      Object.fromEntries(
        withLineage([], { reprocessed, firstFailedMs: first }).map(([name, value]) => [
          name.toString(),
          String(value),
        ]),
      )
    await bench.put(input(), [
      { value: streamOf('twice'), headers: headers(2) },
      { value: streamOf('thrice'), headers: headers(3) },
    ])
    await happened('dead-lettered')
    await happened('quarantined')
    const [again] = await dead()
    const [spent] = await dead(quarantine())
    expect(again!.message).toMatchObject({ dlqReprocessCount: 2, quarantined: false })
    expect(spent!.message).toMatchObject({ dlqReprocessCount: 3, quarantined: true })
    expect(Number(spent!.message.firstFailedAt!.seconds)).toBe(first / 1000)
  })

  it('dead-letters without a run a record that killed its process too often', async () => {
    const topic = await bench.topic('in', 1)
    await bench.put(topic, [{ value: streamOf('poison') }, { value: streamOf('good') }])
    await bench.noteAt(`${bench.name}.group`, topic, ['5'])
    const seen: string[] = []
    await started(({ stream }) => void seen.push(stream.streamId), { maxDeliveries: 5 })
    await happened('dead-lettered')
    await happened('routed')
    expect(seen).toEqual(['good'])
    expect((await dead())[0]!.message.errorType).toBe('CRASH_LOOP')
  })

  it('retries forever without a DLQ, drops nothing, and continues with other keys', async () => {
    let calls = 0
    await started(
      ({ stream }) => {
        if (stream.streamId === 'bad' && ++calls < 4)
          throw Object.assign(new Error('bad'), { status: 400 })
      },
      { dlq: { enabled: false } },
    )
    await bench.put(input(), [
      { key: 'a', value: streamOf('bad'), partition: 0 },
      { key: 'b', value: streamOf('good'), partition: 0 },
    ])
    await happened('routed', 2)
    expect(calls).toBe(4)
    await happened('error', 3)
  })

  it('commits results and offsets in one transaction, if transactional', async () => {
    await started(
      ({ stream }) => {
        if (stream.streamId.endsWith('7')) throw Object.assign(new Error('bad'), { status: 400 })
      },
      {},
      { transactional: true },
    )
    const records = Array.from({ length: 200 }, (_, n) => ({
      key: `k${n}`,
      value: streamOf(`s${n}`),
    }))
    await bench.put(input(), records)
    await happened('routed', 180)
    await happened('dead-lettered', 20)
    const routed = (await bench.read(next())).map(({ value }) => readStream(value)!.streamId)
    expect(new Set(routed).size).toBe(180)
    expect(routed).toHaveLength(180)
    expect(await dead()).toHaveLength(20)
    const sum = async (): Promise<number> =>
      (await bench.committed(`${bench.name}.group`)).reduce((all, one) => all + one, 0)
    await expect.poll(sum).toBe(200)
  })

  it('rejects invalid settings', () => {
    const make = (node: Partial<NodeInput>) => () =>
      new PipelineNode({ url, node: { cluster: 'c', node: 'n', ...node }, module: () => undefined })
    expect(make({ concurrency: 0 })).toThrow(/concurrency must be 1 or more, not 0/)
    expect(make({ dlq: { maxRetries: -1 } })).toThrow(/dlq.maxRetries must be 0 or more/)
    expect(make({ inputTopic: 'x', dlq: { topic: 'x' } })).toThrow(/cannot store the dead letters/)
    expect(make({ dlq: { topic: 'a b' } })).toThrow(/not a valid topic name/)
    expect(make({ node: '' })).toThrow(/node must be a string/)
  })
})
