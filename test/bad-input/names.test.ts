import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pipelineCapture } from '../../src/pipeline/dead/capture.ts'
import { examineConfig } from '../../src/config/load.ts'
import {
  classify,
  custom,
  DeadLetterQueue,
  decodePayload,
  DLQPolicy,
  encodePayload,
  MainLoop,
  openMailbox,
  viewPayload,
  type QueueOptions,
} from '../../src/index.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { readOperationFile } from '../../src/transfer/operation-file/read.ts'
import { readOptions } from '../../src/options/options.ts'
import { graphsOf } from '../../src/pipeline/graph/graph.ts'
import { toPublishOptions } from '../../src/taps/rabbitmq-letter.ts'
import { aQueue, refused } from '../a-queue.ts'
import { redrive } from '../cli/run-cli.ts'
import { aFolder } from '../folders.ts'
import { aLoop } from '../loops/a-loop.ts'
import { aForeignLetter } from '../taps/a-foreign-letter.ts'
import { hostileNames } from './hostile-names.ts'

const folder = aFolder('redrive-names')

/** An object with this name as an own key. */
const under = <T>(name: string, value: T): Record<string, T> => Object.fromEntries([[name, value]])
const toJson = (value: unknown): string => JSON.stringify(value)

const names = hostileNames.map((name) => [name] as const)

describe.each(['memory', 'sqlite'])('a letter store in %s', (kind) => {
  it.each(names)(
    'stores, finds, counts and runs letters with the name %s everywhere',
    async (name) => {
      const url = kind === 'memory' ? 'memory:' : `sqlite:${join(folder, `${name}.db`)}`
      const dlq = await DeadLetterQueue.open(url)
      try {
        const payload = under(name, under(name, 1))
        const metadata = under(name, under(name, 'x'))
        const headers = under(name, 'x')
        const thrown = Object.assign(new Error(name), { name, code: name })
        const { id } = await dlq.enqueue({ type: name, payload }, thrown, {
          tags: [name],
          tenant: name,
          lane: name,
          dedupeKey: name,
          metadata,
          headers,
        })
        const letter = (await dlq.get(id))!
        expect(toJson(letter.metadata)).toBe(toJson(metadata))
        expect(toJson(letter.headers)).toBe(toJson(headers))
        expect(toJson(decodePayload(letter.payload))).toBe(toJson(payload))
        expect(letter).toMatchObject({ category: 'unknown', failure: { name, code: name } })
        expect(letter).toMatchObject({ maxRetries: 3, priority: 'medium' })
        for (const filter of [{ queue: name }, { tag: name }, { tenant: name }, { lane: name }])
          expect((await dlq.find(filter)).items.map((found) => found.id)).toEqual([id])
        await dlq.edit(id, { headers: under(name, 'y'), metadata, by: name, reason: name })
        const resolved = new Promise((resolve) => dlq.on('resolved', resolve))
        dlq.handle(name, ({ letter: { headers: now } }) => {
          expect(toJson(now)).toBe(toJson(under(name, 'y')))
        })
        dlq.start()
        await dlq.retry(id)
        await resolved
        expect(toJson((await dlq.stats()).queues)).toBe(toJson(under(name, 1)))
      } finally {
        await dlq.close()
      }
    },
  )
})

describe('options', () => {
  it.each(names.filter(([name]) => name !== '__proto__'))(
    'with the name %s take effect',
    async (name) => {
      const isRefused = name === 'constructor'
      const backoff = isRefused ? {} : { backoff: custom(name) }
      const options: QueueOptions = {
        queues: under(name, { maxRetries: 7, dependency: name, ...backoff }),
        dependencies: under(name, { breaker: false as const }),
        ...(isRefused ? {} : { backoffs: under(name, () => 12_345) }),
      }
      const { dlq } = await aQueue(options)
      const letter = await dlq.enqueue({ type: name }, refused())
      expect(letter).toMatchObject({ maxRetries: 7, ...(isRefused ? {} : { backoffMs: 12_345 }) })
      const executor = dlq.executor({ policies: under(name, { attempts: 1 }) })
      expect(await executor.execute(name, ({ attempt }) => attempt)).toBe(1)
      await dlq.close()
    },
  )

  it.each(names)('that are not set for %s are the defaults', async (name) => {
    const { dlq } = await aQueue({ queues: { other: { dependency: name } } })
    expect(await dlq.enqueue({ type: name }, refused())).toMatchObject({
      maxRetries: 3,
    })
    await expect(dlq.executor().execute(name, () => 1)).rejects.toThrow(name)
    await dlq.close()
  })

  it.each(['queues', 'dependencies', 'backoffs'])('refuse __proto__ as a name in %s', (map) => {
    expect(() => readOptions({ [map]: under('__proto__', { maxRetrys: 1 }) })).toThrow(
      `option "${map}": "__proto__" is not allowed as a name, use another one`,
    )
  })

  it('refuse a function under constructor', () => {
    expect(() => readOptions({ backoffs: { constructor: () => 1 } })).toThrow(
      'option "backoffs": "constructor" is not allowed as a name, use another one',
    )
  })

  it('refuse __proto__ as the name of a policy', async () => {
    const { dlq } = await aQueue()
    expect(() => dlq.executor({ policies: under('__proto__', {}) })).toThrow(
      'is not allowed as a name',
    )
    await dlq.close()
  })

  it.each(names)('report %s as unknown', (name) => {
    expect(() => readOptions(under(name, 1))).toThrow(`unknown option "${name}"`)
    expect(() => readOptions({ queues: { a: under(name, 1) } })).toThrow(name)
  })
})

describe('a configuration', () => {
  it.each(names)('finds no secret in the environment under %s', (name) => {
    const yaml = `handlers:\n  a:\n    http: { url: 'https://a.test', secret: { env: ${name} } }\n`
    const read = (): string => yaml
    const examined = examineConfig({ env: {}, file: 'redrive.yaml', read })
    expect(toJson(examined)).toContain(`${name} is not set`)
  })
})

describe('mailboxes', () => {
  it.each(names)('with the scheme %s are unknown', async (name) => {
    const scheme = name.toLowerCase().replaceAll('_', 'a')
    await expect(openMailbox(`${scheme}:x#y`)).rejects.toThrow(`unknown mailbox scheme ${scheme}:`)
  })

  it.each(names)('named %s transport headers and bodies with this name', async (name) => {
    for (const url of ['memory:', `sqlite:${join(folder, 'mail.db')}`]) {
      const mailbox = await openMailbox(url, { name })
      await mailbox.send(under(name, 1), { headers: under(name, 'x') })
      const [message] = await mailbox.receive()
      expect([message!.headers, message!.value()].map(toJson)).toEqual(
        [under(name, 'x'), under(name, 1)].map(toJson),
      )
      await message!.acknowledge()
      await mailbox.close()
    }
  })

  it.each(names)('named %s are read by a loop that dead-letters to letters', async (name) => {
    const { clock, onEvent, settle } = aLoop()
    const { dlq, eventsOf } = await aQueue()
    const requests = memoryMailbox({ name, clock })
    const loop = new MainLoop({
      requests,
      clock,
      onEvent,
      dlq: { to: dlq.deadLetters(), policy: new DLQPolicy({ maxDeliveryCount: 1 }) },
      process: () => {
        throw Object.assign(new Error(name), { name })
      },
    })
    void loop.run()
    await requests.send(under(name, 1), { headers: under(name, 'x') })
    await settle()
    await loop.shutdown()
    expect(eventsOf('captured')[0]!.letter).toMatchObject({
      source: { mailbox: name },
      failure: { name },
    })
    expect(toJson(eventsOf('captured')[0]!.letter.headers)).toContain(
      toJson(under(name, 'x')).slice(1, -1),
    )
    await dlq.close()
  })
})

describe('taps', () => {
  it.each(names)('return a RabbitMQ header named %s', (name) => {
    const letter = aForeignLetter({
      headers: under(name, 'x'),
      origin: { queue: 'q', typed: '{}' },
    })
    expect(toJson(toPublishOptions(letter, 1).headers)).toContain(
      toJson(under(name, 'x')).slice(1, -1),
    )
  })

  it.each(names)('store a letter with a header, a source and an error named %s', async (name) => {
    const { dlq, eventsOf } = await aQueue()
    const error = { name, message: name }
    await dlq.foreignLetters()(aForeignLetter({ source: name, headers: under(name, 'x'), error }))
    const { letter } = eventsOf('captured')[0]!
    expect(letter).toMatchObject({ queue: name, failure: error })
    expect(toJson(letter.headers)).toBe(toJson(under(name, 'x')))
    await dlq.close()
  })
})

describe('pipelines', () => {
  it.each(names)('run a graph whose nodes and functions are named %s', (name) => {
    const graphs = graphsOf({
      cluster_id: 'prod',
      graphs: [
        {
          graph_id: name,
          nodes: [
            { node_id: name, module: { function: name } },
            { node_id: 'b', module: { function: name } },
          ],
          edges: [{ from: name, to: 'b' }],
        },
      ],
    })
    expect(toJson(graphs)).toContain(`"${name}"`)
  })

  it.each(names)('give no reason for an error type named %s', (name) => {
    const captured = pipelineCapture({
      deadKey: 'k',
      source: {
        kind: 'pipeline',
        cluster: 'prod',
        node: name,
        topic: 'in',
        partition: 0,
        offset: '1',
        streamId: 's',
        hops: 0,
      },
      body: { bytes: Buffer.from('x'), size: 1, contentType: 'text/plain' },
      errorType: name,
      message: name,
      retries: 0,
      firstFailedAt: '2026-01-01T00:00:00.000Z',
      headers: under(name, 'x'),
      quarantined: false,
      metadata: {},
    })
    expect(captured).not.toHaveProperty('reason')
  })
})

describe('data', () => {
  it.each(names)('with keys named %s survives the payload codec', (name) => {
    const value = {
      plain: under(name, 1),
      map: new Map([[name, under(name, new Date(0))]]),
      set: new Set([name]),
    }
    const payload = encodePayload(value)
    expect(decodePayload(payload)).toEqual(value)
    expect(viewPayload(payload, 2000)).toContain(name)
    expect(({} as { 1?: unknown })[1]).toBeUndefined()
  })

  it.each(names)('with the name %s everywhere has an unknown kind', (name) => {
    const error = Object.assign(new Error(name), {
      name,
      code: name,
      type: name,
      cause: { code: name },
    })
    expect(classify(error)).toMatchObject({ category: 'unknown', rule: 'unknown' })
  })

  it.each(names)('of an operation file with %s for every value is refused or unknown', (name) => {
    const item = {
      id: 'dlq_1_a',
      enqueuedAt: 1,
      updatedAt: 1,
      status: name,
      priority: name,
      retryCount: 0,
      maxRetries: 1,
      error: { category: name, message: name, timestamp: 1 },
      operation: { type: name, payload: under(name, 1) },
      metadata: under(name, 1),
      history: [{ timestamp: 1, action: name, status: name }],
    }
    const { letters, problems } = readOperationFile(toJson([item]))
    expect(letters).toEqual([])
    expect(problems).toHaveLength(1)
    const known = { ...item, status: 'queued', priority: 'high', history: [] }
    const [letter] = readOperationFile(toJson([known])).letters
    expect(letter).toMatchObject({ state: 'pending', category: 'unknown' })
  })
})

describe('the command line', () => {
  it('has no flags or commands with inherited property names', async () => {
    for (const args of [
      ['constructor'],
      ['list', '--constructor'],
      ['list', '--set', '__proto__=1'],
    ]) {
      const { exit, err } = await redrive(args)
      expect([exit === 0, err === '']).toEqual([false, false])
      expect(err).not.toContain('[native code]')
    }
  })
})
