import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { durationFromMs } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GraphInput } from '../../../src/pipeline/graph/schema.ts'
import { dlqSettingsOf, graphsOf, readGraphs } from '../../../src/pipeline/graph/graph.ts'
import { DlqConfigSchema } from '../../../src/pipeline/proto/redrive/pipeline/v1/dlq_pb.ts'

type NodeInput = GraphInput['graphs'][number]['nodes'][number]
type GraphPart = GraphInput['graphs'][number]

const aNode = (node_id: string, more: Partial<NodeInput> = {}): NodeInput => ({
  node_id,
  module: { function: 'parse' },
  ...more,
})

const aGraph = (nodes: NodeInput[], edges: GraphPart['edges'] = []): GraphInput => ({
  cluster_id: 'prod',
  graphs: [{ graph_id: 'docs', nodes, edges }],
})

/** The problems, line by line. */
function problemsOf(read: () => unknown): string[] {
  try {
    read()
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
    const [first = '', ...rest] = (error as Error).message.split('\n')
    return rest.length === 0 ? [first] : rest.map((line) => line.trim())
  }
  return []
}

/** The same for values that the types would reject. */
const problemsIn = (node: object, edges: unknown = []): string[] =>
  problemsOf(() =>
    graphsOf(aGraph([{ ...aNode('a'), ...node }, aNode('b')], edges as GraphPart['edges'])),
  )

const text = `
cluster_id: prod
kafka: kafka://127.0.0.1:9092
graphs:
  - graph_id: docs
    nodes:
      - node_id: 7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b
        name: Parser
        kafka_input_topic: prod.parser
        module: { http: http://parser.internal:8080/process }
        dlq_config:
          enabled: false
          topic: dead.parser
          max_retries: 0
          retry_backoff: 1.5s
          max_reprocess_count: 5
          dead_letter_logical_failures: true
          include_payload: false
        dlq_retention: 90d
        max_hops: 0
        concurrency: 4
        timeout: 10s
        deadline: 2m
        max_deliveries: 2
        max_inline_bytes: 256KiB
        kafka_partitions: 12
        kafka_replicas: 3
      - node_id: chunker
        module: { grpc: 'chunker:9090' }
    edges:
      - { from: 7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b, to: chunker, max_hops: 7 }
      - { from: chunker, to: 7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b }
`

describe('readGraphs', () => {
  it('reads all settings of a node', () => {
    const { cluster, kafka, nodes, modules } = readGraphs(text)
    expect(cluster).toBe('prod')
    expect(kafka).toBe('kafka://127.0.0.1:9092')
    expect(nodes[0]).toEqual({
      cluster: 'prod',
      graph: 'docs',
      node: '7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b',
      name: 'Parser',
      inputTopic: 'prod.parser',
      dlq: {
        enabled: false,
        topic: 'dead.parser',
        quarantineTopic: 'quarantine.prod.7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b',
        maxRetries: 0,
        retryBackoffMs: 1500,
        maxReprocessCount: 5,
        deadLetterLogicalFailures: true,
        includePayload: false,
      },
      next: [{ to: 'chunker', topic: 'pipestream.prod.docs.chunker', maxHops: 7 }],
      maxHops: 0,
      concurrency: 4,
      timeoutMs: 10_000,
      deadlineMs: 120_000,
      maxDeliveries: 2,
      partitions: 12,
      replicas: 3,
      dlqRetentionMs: 90 * 86_400_000,
      maxInlineBytes: 256 * 1024,
    })
    expect(Object.fromEntries(modules)).toEqual({
      '7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b': { http: 'http://parser.internal:8080/process' },
      chunker: { grpc: 'chunker:9090' },
    })
  })

  it('has a default for every setting', () => {
    expect(readGraphs(text).nodes[1]).toEqual({
      cluster: 'prod',
      graph: 'docs',
      node: 'chunker',
      name: 'chunker',
      inputTopic: 'pipestream.prod.docs.chunker',
      dlq: {
        enabled: true,
        topic: 'dlq.prod.chunker',
        quarantineTopic: 'quarantine.prod.chunker',
        maxRetries: 3,
        retryBackoffMs: 1000,
        maxReprocessCount: 3,
        deadLetterLogicalFailures: false,
        includePayload: true,
      },
      next: [{ to: '7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b', topic: 'prod.parser', maxHops: 0 }],
      maxHops: 10,
      concurrency: 16,
      timeoutMs: 30_000,
      deadlineMs: 240_000,
      maxDeliveries: 5,
      partitions: 4,
      replicas: -1,
      dlqRetentionMs: 30 * 86_400_000,
      maxInlineBytes: 512 * 1024,
    })
  })

  it('reports the line of a problem', () => {
    expect(
      problemsOf(() => readGraphs(text.replace('max_retries', 'max_retrys'), 'g.yaml')),
    ).toEqual([
      'graphs.0.nodes.0.dlq_config.max_retrys (g.yaml:14): unknown key; did you mean "max_retries"?',
    ])
    expect(problemsOf(() => readGraphs('cluster_id: [', 'g.yaml'))[0]).toContain('g.yaml:1')
    expect(problemsOf(() => readGraphs('just text', 'g.yaml'))).toEqual([
      'g.yaml: must be an object',
    ])
    expect(problemsOf(() => readGraphs('', 'g.yaml'))).toHaveLength(1)
  })
})

describe('graphsOf', () => {
  it('reports all problems at once', () => {
    expect(
      problemsIn({
        dlq_confg: {},
        max_hops: -1,
        concurrency: 0,
        timeout: '10 s',
        dlq_config: { max_retries: -1, enabled: 'yes', retry_backoff: -5 },
      }),
    ).toEqual([
      expect.stringContaining('dlq_config.enabled: must be true or false, got "yes"'),
      'graphs.0.nodes.0.dlq_config.max_retries: must be an integer from 0 to 1000, got -1',
      expect.stringMatching(/retry_backoff: must be a duration from 0 .*as in 30s.*got -5$/),
      'graphs.0.nodes.0.max_hops: must be an integer from 0 to 2147483647, got -1',
      'graphs.0.nodes.0.concurrency: must be an integer from 1 to 10000, got 0',
      expect.stringMatching(/timeout: must be a duration from 1ms .*got "10 s"$/),
      'graphs.0.nodes.0.dlq_confg: unknown key; did you mean "dlq_config"?',
    ])
  })

  it.each<[what: string, node: object, problem: string]>([
    ['an id that is empty', { node_id: '' }, 'node_id: must be a string of 1 to 200 characters'],
    [
      'an id with a control',
      { node_id: 'a\n' },
      'node_id: must be a string of 1 to 200 characters',
    ],
    ['an id that is missing', { node_id: undefined }, 'node_id: is missing'],
    [
      'no module',
      { module: undefined },
      'module: is missing: it must be an object with http, grpc, function',
    ],
    ['an empty module', { module: {} }, 'module: must have one of http, grpc and function'],
    ['two modules', { module: { grpc: 'h:1', function: 'f' } }, 'must have one of http, grpc'],
    ['a URL of something else', { module: { http: 'ftp://x' } }, 'must start with http or https'],
    ['an address without a port', { module: { grpc: 'host' } }, 'module.grpc: must be host:port'],
    [
      'a topic that Kafka does not take',
      { kafka_input_topic: 'a b' },
      '"a b" is not a valid topic name',
    ],
    [
      'a DLQ topic that Kafka does not take',
      { dlq_config: { topic: 'ü' } },
      'is not a valid topic name',
    ],
    [
      'a fraction of a count',
      { max_deliveries: 1.5 },
      'must be an integer from 1 to 1000, got 1.5',
    ],
    ['no copies', { kafka_replicas: 0 }, 'kafka_replicas: must be -1, or an integer from 1 to 100'],
    [
      'a timeout over the deadline',
      { timeout: '5m' },
      'timeout: is 5m, but all calls for a record together have 4m (deadline)',
    ],
  ])('refuses %s', (_, node, problem) => {
    const problems = problemsIn(node)
    expect(problems).toEqual([expect.stringContaining(problem)])
    expect(problems[0]).toMatch(/^graphs\.0\.nodes\.0\./)
  })

  it('reports invalid values and contradictions together', () => {
    const nodes = [
      aNode('a', { concurrency: -1 }),
      aNode('b'),
      aNode('b', { timeout: 90_000_000 }),
      { ...aNode('c'), node_id: 7 },
    ] as NodeInput[]
    const found = problemsOf(() => graphsOf(aGraph(nodes, [{ from: 'a', to: 'z' }])))
    expect(found.map((line) => line.split(':')[0])).toEqual([
      'graphs.0.nodes.0.concurrency',
      'graphs.0.nodes.3.node_id',
      'graphs.0.nodes.2.node_id',
      'graphs.0.nodes.2.timeout',
      'graphs.0.edges.0.to',
    ])
  })

  it('accepts 0 where it has a meaning: no retry, no replay, unlimited hops', () => {
    const { nodes } = graphsOf(
      aGraph(
        [
          aNode('a', {
            max_hops: 0,
            dlq_config: { max_retries: 0, max_reprocess_count: 0, retry_backoff: 0 },
          }),
          aNode('b'),
        ],
        [{ from: 'a', to: 'b', max_hops: 0 }],
      ),
    )
    expect(nodes[0]).toMatchObject({
      maxHops: 0,
      dlq: { maxRetries: 0, maxReprocessCount: 0, retryBackoffMs: 0 },
      next: [{ to: 'b', maxHops: 0 }],
    })
  })

  it('treats empty topics and names as unset, like protos', () => {
    const [node] = graphsOf(
      aGraph([aNode('a', { kafka_input_topic: '', name: '', dlq_config: { topic: '' } })]),
    ).nodes
    expect(node).toMatchObject({
      name: 'a',
      inputTopic: 'pipestream.prod.docs.a',
      dlq: { topic: 'dlq.prod.a' },
    })
  })

  it('rejects edges to and from unknown nodes', () => {
    expect(
      problemsIn({}, [
        { from: 'a', to: 'parser' },
        { from: 'aa', to: 'b' },
      ]),
    ).toEqual([
      'graphs.0.edges.0.to: is not a node of this graph',
      'graphs.0.edges.1.from: is not a node of this graph: did you mean "a"?',
    ])
  })

  it('rejects a duplicate edge', () => {
    const edge = { from: 'a', to: 'b' }
    expect(problemsIn({}, [edge, { ...edge, max_hops: 3 }])).toEqual([
      'graphs.0.edges.1: is the same as graphs.0.edges.0',
    ])
  })

  it('rejects an edge to another graph', () => {
    const input: GraphInput = {
      cluster_id: 'prod',
      graphs: [
        { graph_id: 'one', nodes: [aNode('a')], edges: [{ from: 'a', to: 'b' }] },
        { graph_id: 'two', nodes: [aNode('b')] },
      ],
    }
    expect(problemsOf(() => graphsOf(input))).toEqual([
      'graphs.0.edges.0.to: is not a node of this graph: did you mean "a"?',
    ])
  })

  it('rejects a duplicate id, also in two graphs of a cluster', () => {
    const nodes = [aNode('a')]
    expect(problemsOf(() => graphsOf(aGraph([...nodes, ...nodes])))).toEqual([
      expect.stringContaining('graphs.0.nodes.1.node_id: is the same as graphs.0.nodes.0.node_id'),
    ])
    const input: GraphInput = {
      cluster_id: 'prod',
      graphs: [
        { graph_id: 'one', nodes },
        { graph_id: 'one', nodes },
      ],
    }
    expect(problemsOf(() => graphsOf(input))).toEqual([
      'graphs.1.graph_id: is the same as graphs.0.graph_id',
      expect.stringContaining('graphs.1.nodes.0.node_id: is the same as graphs.0.nodes.0.node_id'),
    ])
  })

  it.each<[what: string, one: Partial<NodeInput>, other: Partial<NodeInput>, problem: string]>([
    [
      'two nodes that read one topic',
      { kafka_input_topic: 'x' },
      { kafka_input_topic: 'x' },
      'graphs.0.nodes.1.kafka_input_topic: x is both the input topic of "b" and the input topic of "a"',
    ],
    [
      'two nodes with one DLQ topic',
      { dlq_config: { topic: 'x' } },
      { dlq_config: { topic: 'x' } },
      'graphs.0.nodes.1.dlq_config.topic: x is both the DLQ topic of "b" and the DLQ topic of "a"',
    ],
    [
      'a DLQ topic that its own node reads',
      { kafka_input_topic: 'x', dlq_config: { topic: 'x' } },
      {},
      'graphs.0.nodes.0.dlq_config.topic: x is both the DLQ topic of "a" and the input topic of "a"',
    ],
    [
      'a DLQ topic that another node reads',
      { dlq_config: { topic: 'x' } },
      { kafka_input_topic: 'x' },
      'graphs.0.nodes.1.kafka_input_topic: x is both the input topic of "b" and the DLQ topic of "a"',
    ],
    [
      'the usual DLQ topic of another node',
      {},
      { dlq_config: { topic: 'dlq.prod.a' } },
      'dlq.prod.a is both the DLQ topic of "b" and the DLQ topic of "a"',
    ],
    [
      'the quarantine topic of another node',
      {},
      { kafka_input_topic: 'quarantine.prod.a' },
      'quarantine.prod.a is both the input topic of "b" and the quarantine topic of "a"',
    ],
    [
      'names that Kafka takes for the same',
      { kafka_input_topic: 'x.y' },
      { kafka_input_topic: 'x_y' },
      'x_y is both the input topic of "b" and the input topic of "a"',
    ],
  ])('refuses %s', (_, one, other, problem) => {
    const problems = problemsOf(() => graphsOf(aGraph([aNode('a', one), aNode('b', other)])))
    expect(problems).toEqual([expect.stringContaining(problem)])
  })

  it('rejects an invalid Kafka URL without showing it', () => {
    const input = { ...aGraph([aNode('a')]), kafka: 'amqp://user:secret@host' }
    const problems = problemsOf(() => graphsOf(input))
    expect(problems).toEqual([expect.stringMatching(/^kafka: a Kafka URL starts with kafka/)])
    expect(problems.join()).not.toContain('secret')
  })

  it.each([null, undefined, 7, 'text', []])('refuses %j', (input) => {
    expect(problemsOf(() => graphsOf(input as unknown as GraphInput))).toHaveLength(1)
  })

  it('rejects keys that could reach a prototype', () => {
    const input = JSON.parse('{"__proto__": {"cluster_id": "x"}, "graphs": []}') as GraphInput
    expect(problemsOf(() => graphsOf(input)).join('\n')).toContain('__proto__')
  })

  it('returns the same settings in any order of nodes and edges', () => {
    const ids = ['a', 'b', 'a.b', 'a_b', 'ü', 'x'.repeat(200)]
    const nodes = ids.map((id) => aNode(id))
    const edges = ids.flatMap((from) => ids.slice(0, 3).map((to) => ({ from, to })))
    const byId = ({ node: one }: { node: string }, { node: other }: { node: string }): number =>
      one < other ? -1 : 1
    const settingsOf = (input: GraphInput) =>
      graphsOf(input)
        .nodes.map(({ next, ...node }) => ({
          ...node,
          next: next.toSorted((one, other) => (one.to < other.to ? -1 : 1)),
        }))
        .sort(byId)
    const usual = settingsOf(aGraph(nodes, edges))
    const shuffled = <T>(all: T[]) =>
      fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length })
    fc.assert(
      fc.property(shuffled(nodes), shuffled(edges), (nodes, edges) => {
        expect(settingsOf(aGraph(nodes, edges))).toEqual(usual)
      }),
    )
  })

  it('never gives two nodes one topic, whatever their ids are', () => {
    const id = fc.string({
      minLength: 1,
      maxLength: 8,
      unit: fc.constantFrom('a', 'b', '.', '_', '-', '2', 'E', 'ü', ' '),
    })
    fc.assert(
      fc.property(fc.uniqueArray(id, { minLength: 2, maxLength: 10 }), (ids) => {
        const { nodes } = graphsOf(aGraph(ids.map((id) => aNode(id))))
        const topics = nodes.flatMap(({ inputTopic, dlq }) => [
          inputTopic,
          dlq.topic,
          dlq.quarantineTopic,
        ])
        expect(new Set(topics.map((topic) => topic.replaceAll('.', '_'))).size).toBe(topics.length)
      }),
    )
  })
})

describe('dlqSettingsOf', () => {
  const place = { cluster: 'prod', node: 'a' }
  const usual = {
    enabled: true,
    topic: 'dlq.prod.a',
    quarantineTopic: 'quarantine.prod.a',
    maxRetries: 3,
    retryBackoffMs: 1000,
    maxReprocessCount: 3,
    deadLetterLogicalFailures: false,
    includePayload: true,
  }

  it('has defaults for unset fields, also after encoding', () => {
    const empty = fromBinary(DlqConfigSchema, new Uint8Array())
    expect(dlqSettingsOf(undefined, place)).toEqual(usual)
    expect(dlqSettingsOf(empty, place)).toEqual(usual)
  })

  it('distinguishes 0 and false from unset fields', () => {
    const config = create(DlqConfigSchema, {
      enabled: false,
      topic: '',
      maxRetries: 0,
      retryBackoff: durationFromMs(0),
      maxReprocessCount: 0,
      includePayload: false,
    })
    const wired = fromBinary(DlqConfigSchema, toBinary(DlqConfigSchema, config))
    expect(dlqSettingsOf(wired, place)).toEqual({
      ...usual,
      enabled: false,
      maxRetries: 0,
      retryBackoffMs: 0,
      maxReprocessCount: 0,
      includePayload: false,
    })
  })

  it('reads the four basic fields by their numbers', () => {
    // 1, number: false; 2, bytes: x; 3, number: 2; 4, bytes: 1 second and 500000000 nanoseconds.
    const bytes = Buffer.from('0800 120178 1802 2208 0801 1080cab5ee01'.replaceAll(' ', ''), 'hex')
    expect(dlqSettingsOf(fromBinary(DlqConfigSchema, bytes), place)).toEqual({
      ...usual,
      enabled: false,
      topic: 'x',
      maxRetries: 2,
      retryBackoffMs: 1500,
    })
  })

  it('rejects values out of bounds', () => {
    const wrong = create(DlqConfigSchema, {
      maxRetries: -1,
      retryBackoff: durationFromMs(-1000),
      topic: 'a b',
    })
    expect(problemsOf(() => dlqSettingsOf(wrong, place))).toEqual([
      expect.stringContaining('topic: "a b" is not a valid topic name'),
      'max_retries: must be an integer from 0 to 1000, got -1',
      expect.stringContaining('retry_backoff: must be a duration from 0'),
    ])
  })
})
