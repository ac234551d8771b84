import { describe, expect, it } from 'vitest'
import { pipelineCapture } from '../../src/pipeline/dead/capture.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { deadStreamOf } from '../../src/pipeline/dead/stream.ts'
import { readGraphs } from '../../src/pipeline/graph/graph.ts'
import { Pipeline } from '../../src/pipeline/pipeline.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { backend } from '../servers/servers.ts'
import { putOf } from './dead-records.ts'
import { pipelineBench } from './pipeline-bench.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('Pipeline', { timeout: 60_000 }, () => {
  it('erases the letters of the queue of its dead letters', async () => {
    const bench = pipelineBench(url)
    const { name } = bench
    const graphs = readGraphs(
      `{ cluster_id: ${name}, graphs: [{ graph_id: g, nodes: [{ node_id: n, module: { function: f } }] }] }`,
    )
    const functions = { f: async () => {} }
    await using pipeline = await Pipeline.open(graphs, { url, functions })
    const store = memoryStore({ clock: systemClock })
    const dlq = await DeadLetterQueue.open(store, { clock: systemClock })
    const letters = pipeline.deadLetters(dlq)
    const [settings] = graphs.nodes
    const { key, value } = putOf({ id: 'ada', offset: 1 }, settings!, 0)
    // As after 30 days: the topic no longer has it.
    const dead = deadStreamOf(
      {
        topic: settings!.dlq.topic,
        partition: 0,
        offset: 1,
        timestampMs: Date.UTC(2026, 0, 1),
        key: Buffer.from(key!),
        value,
        headers: [],
      },
      { cluster: name, node: 'n', isQuarantine: false },
    )
    await dlq.pipelineLetters().keep(pipelineCapture(dead))
    const report = await pipeline.erase({ streamId: 'ada' }, { by: 'ann', reason: 'request 7' })
    expect(report).toMatchObject({ letters: 1 })
    expect((await store.find({})).items).toEqual([])
    expect(await store.records.list('erasure')).toHaveLength(1)
    await letters.stop()
    await dlq.close()
    await bench.close()
  })
})
