import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../../src/api/client.ts'
import { graphsOf } from '../../src/pipeline/graph/graph.ts'
import { PipelineAdmin } from '../../src/pipeline/admin.ts'
import { deadBench, type DeadBench } from '../pipeline/dead-records.ts'
import { backend } from '../servers/servers.ts'
import { aServer, type TestServer } from './a-server.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('the pipeline of a server', { timeout: 120_000 }, () => {
  let bench: DeadBench
  let pipeline: PipelineAdmin
  let server: TestServer
  let client: Client

  beforeEach(async () => {
    bench = await deadBench(url, { graph: 'docs' })
    const { inputTopic, dlq } = bench.settings
    const module = { function: 'parse' }
    const graphs = graphsOf({
      cluster_id: bench.name,
      graphs: [
        {
          graph_id: 'docs',
          nodes: [
            {
              node_id: 'node-1',
              name: 'parser',
              kafka_input_topic: inputTopic,
              module,
              dlq_config: { topic: dlq.topic },
            },
            { node_id: 'node-2', module },
          ],
          edges: [{ from: 'node-1', to: 'node-2' }],
        },
      ],
    })
    pipeline = new PipelineAdmin({ graphs, cluster: bench.cluster })
    server = await aServer({}, {}, { pipeline })
    client = await server.client()
  })

  afterEach(async () => {
    await server.close()
    await pipeline.close()
    await bench.close()
    expect(server.errors).toEqual([])
  })

  const dead = [
    { id: 'a', offset: 1 },
    { id: 'b', offset: 2, errorType: 'MODULE_UNAVAILABLE' },
    { id: 'c', offset: 3 },
  ]

  it('shows its nodes, their edges, topics and dead records', async () => {
    await bench.dies(dead)
    const { nodes } = await client.getPipeline()
    expect(nodes).toMatchObject([
      {
        graph: 'docs',
        node: 'node-1',
        name: 'parser',
        inputTopic: bench.settings.inputTopic,
        dlqTopic: bench.settings.dlq.topic,
        next: [{ node: 'node-2', topic: pipeline.graphs.nodes[1]!.inputTopic }],
        depth: 3,
        quarantined: 0,
      },
      { node: 'node-2', next: [], depth: 0, oldestAt: null },
    ])
  })

  it('replays dead records of a node, with a dry run, a filter and a limit', async () => {
    await bench.dies(dead)
    const replay = (input: object = {}): ReturnType<Client['replayNode']> =>
      client.replayNode({ nodeId: 'parser', ...input })
    expect(await replay({ dryRun: true })).toMatchObject({ sent: 3, done: true, dryRun: true })
    expect(await replay({ filter: { errorTypes: ['module_unavailable'] } })).toMatchObject({
      sent: 1,
      passed: 2,
      done: true,
    })
    expect(await replay({ limit: 1, rate: 1000 })).toMatchObject({ sent: 1, done: true })
    expect((await client.getPipeline()).nodes[0]!.depth).toBe(1)
    expect(await replay({ id: 'the rest' })).toMatchObject({ id: 'the rest', sent: 1 })
    // A replay that is done is not made again under its name.
    expect(await replay({ id: 'the rest' })).toMatchObject({ sent: 1, done: true })
    expect(await bench.read(bench.settings.inputTopic)).toHaveLength(3)
    const { items } = await server.dlq.audit({ action: 'pipeline-replay', outcome: 'done' })
    expect(items).toHaveLength(4)
    expect(items.at(-1)).toMatchObject({
      actor: 'mia',
      via: 'http',
      what: { kind: 'pipeline-node', id: 'node-1' },
      after: { sent: 1, done: true },
    })
  })

  it('ends a long call with what is done so far, and continues with the same request', async () => {
    await bench.dies(Array.from({ length: 6 }, (_, n) => ({ id: `r${n}`, offset: n })))
    // One record each 100 seconds: the time limit of the call ends it before the second one.
    const slow = { nodeId: 'node-1', rate: 0.01 }
    const first = client.replayNode(slow)
    const atInput = async (): Promise<number> =>
      (await bench.read(bench.settings.inputTopic)).length
    await expect.poll(atInput, { timeout: 60_000 }).toBeGreaterThan(0)
    await server.clock.advance(20_000)
    const { done, sent, id } = await first
    expect(done).toBe(false)
    expect(sent).toBeLessThan(6)
    expect(await client.replayNode({ ...slow, rate: 1000 })).toMatchObject({
      id,
      sent: 6,
      done: true,
    })
    expect(await atInput()).toBe(6)
  })

  it('names the nodes when one does not exist, and rejects what no replay has', async () => {
    const replay = (input: object): Promise<unknown> => client.replayNode(input as never)
    const unknown = { problem: { status: 404, code: 'NODE_NOT_FOUND' } }
    await expect(replay({ nodeId: 'parzer' })).rejects.toMatchObject(unknown)
    await expect(replay({ nodeId: 'parzer' })).rejects.toThrow('did you mean parser?')
    const invalid = { problem: { status: 400, code: 'INVALID_INPUT' } }
    for (const wrong of [
      { filter: { error: 'x' } },
      { limit: 0 },
      { rate: 0 },
      { id: '' },
      { to: 'a topic' },
      { to: 'no-such-topic' },
    ])
      await expect(replay({ nodeId: 'parser', ...wrong })).rejects.toMatchObject(invalid)
    const denied = { problem: { status: 403 } }
    const viewer = await server.client({ role: 'viewer' })
    await expect(viewer.replayNode({ nodeId: 'parser' })).rejects.toMatchObject(denied)
    const scoped = await server.client({ queues: ['parser'] })
    await expect(scoped.replayNode({ nodeId: 'parser' })).rejects.toMatchObject(denied)
  })
})
