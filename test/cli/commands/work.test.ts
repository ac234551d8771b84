import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { immediate } from '../../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { verifySignature } from '../../../src/backends/http/signature.ts'
import { redisPlace } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { spawn, type ChildProcess } from '../../processes.ts'
import { aFolder, main, plainEnv, redrive } from '../run-cli.ts'

const redis = backend('redis')
const root = aFolder()
let folders = 0

const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Line {
  message: string
  letterId?: string
  queue?: string
  metricsPort?: number
}

/** Starts a worker in a folder and collects its log lines. */
function worker(cwd: string, env: NodeJS.ProcessEnv = {}, args: readonly string[] = []) {
  const child = spawn(process.execPath, [main, 'work', '--config', 'redrive.yaml', ...args], {
    cwd,
    env: { ...plainEnv, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const lines: Line[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => lines.push(JSON.parse(line) as Line))
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>
  const ended = once(reader, 'close')
  /** Resolves once the message was logged `count` times; rejects if the worker ends before. */
  const logged = async (message: string, count = 1): Promise<Line[]> => {
    const found = (): Line[] => lines.filter((line) => line.message === message)
    while (found().length < count)
      if ((await Promise.race([once(reader, 'line'), ended.then(() => 'ended')])) === 'ended')
        throw new Error(`the worker ended without "${message}": ${JSON.stringify(lines)}`)
    return found()
  }
  return { child, lines, logged, exited, ended }
}

async function enqueue(
  store: string,
  letters: [queue: string, payload: unknown][],
): Promise<string[]> {
  const dlq = await DeadLetterQueue.open(store, { backoff: immediate() })
  const ids: string[] = []
  for (const [queue, payload] of letters) {
    const { id } = await dlq.enqueue({ type: queue, payload }, new Error('connect ECONNREFUSED'))
    ids.push(id)
  }
  await dlq.close()
  return ids
}

function aWorkFolder(): { cwd: string; store: string } {
  const cwd = join(root, String(++folders))
  mkdirSync(cwd)
  return { cwd, store: `sqlite:${join(cwd, 'redrive.db')}` }
}

async function aServer(
  answer: (body: Buffer, request: IncomingMessage, response: ServerResponse) => void,
) {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => answer(Buffer.concat(parts), request, response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/redrive`
}

describe('work', () => {
  it('redelivers with the configured handlers, and exits with 0 on SIGTERM', async () => {
    const secret = 'shared by both sides'
    const posted: { body: string; signed: boolean }[] = []
    const url = await aServer((body, { headers }, response) => {
      const signature = headers['redrive-signature'] as string
      const signed = verifySignature(signature, body, secret, systemClock.now())
      posted.push({ body: body.toString(), signed })
      response.writeHead(204).end()
    })
    const { cwd, store } = aWorkFolder()
    const copy = `process.stdin.pipe(require('fs').createWriteStream('copied-' + process.env.REDRIVE_LETTER_ID))`
    writeFileSync(
      join(cwd, 'redrive.yaml'),
      JSON.stringify({
        store,
        pollMs: '50ms',
        handlers: {
          'charge-card': { http: { url, private: true, secret: { env: 'SHARED' } } },
          'resize-image': { command: [process.execPath, '-e', copy] },
        },
      }),
    )
    const [charge, resize] = await enqueue(store, [
      ['charge-card', { order: 42 }],
      ['resize-image', { image: 'cat.png' }],
    ])
    const { child, logged, exited, lines } = worker(cwd, { SHARED: secret })
    const resolved = await logged('letter resolved', 2)
    expect(new Set(resolved.map(({ letterId }) => letterId))).toEqual(new Set([charge, resize]))
    expect(posted).toEqual([{ body: '{"order":42}', signed: true }])
    expect(readFileSync(join(cwd, `copied-${resize}`), 'utf8')).toBe('{"image":"cat.png"}')
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    await logged('worker stopped')
    expect(JSON.stringify(lines)).not.toContain(secret)
  })

  it('serves its metrics with --metrics-port', async () => {
    const { cwd, store } = aWorkFolder()
    const handlers = { mail: { command: [process.execPath, '-e', ''] } }
    writeFileSync(join(cwd, 'redrive.yaml'), JSON.stringify({ store, pollMs: '50ms', handlers }))
    await enqueue(store, [['mail', 1]])
    const { child, logged, exited } = worker(cwd, {}, ['--metrics-port', '0'])
    const [{ metricsPort } = {}] = await logged('worker started')
    await logged('letter resolved')
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
    expect(response.headers.get('content-type')).toContain('version=0.0.4')
    const metrics = await response.text()
    expect(metrics).toContain('redrive_runs_total{queue="mail",outcome="resolved"} 1')
    expect(metrics).toContain('redrive_letters{queue="mail",state="resolved"} 1')
    expect((await fetch(`http://127.0.0.1:${metricsPort}/`)).status).toBe(404)
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })

  it('rejects a --metrics-port that is no port', async () => {
    const { err, exit } = await redrive(['work', '--metrics-port', 'http'], { cwd: root })
    expect(err).toContain('--metrics-port must be a number from 0 to 65535, got "http"')
    expect(exit).toBe(2)
  })

  it('waits for running handlers on SIGINT', async () => {
    const arrived = Promise.withResolvers<ServerResponse>()
    const url = await aServer((_, __, response) => arrived.resolve(response))
    const { cwd, store } = aWorkFolder()
    writeFileSync(
      join(cwd, 'redrive.yaml'),
      JSON.stringify({ store, handlers: { slow: { http: { url, private: true } } } }),
    )
    const [id] = await enqueue(store, [['slow', 1]])
    const { child, logged, exited } = worker(cwd)
    await logged('worker started')
    const response = await arrived.promise
    child.kill('SIGINT')
    await logged('worker is stopping: waiting for running handlers')
    response.writeHead(204).end()
    expect(await logged('letter resolved')).toMatchObject([{ letterId: id }])
    expect(await exited).toEqual([130, null])
  })

  it('kills the programs of command handlers on a second SIGINT', async () => {
    const arrived = Promise.withResolvers<ServerResponse>()
    const url = await aServer((_, __, response) => arrived.resolve(response))
    const { cwd, store } = aWorkFolder()
    // The program runs as long as its request, which gets no response.
    const command = [process.execPath, '-e', `fetch(process.argv[1])`, url]
    writeFileSync(
      join(cwd, 'redrive.yaml'),
      JSON.stringify({ store, handlers: { slow: { command } } }),
    )
    await enqueue(store, [['slow', 1]])
    const { child, logged, exited } = worker(cwd)
    const response = await arrived.promise
    const gone = once(response, 'close')
    onTestFinished(() => void response.destroy())
    child.kill('SIGINT')
    await logged('worker is stopping: waiting for running handlers')
    child.kill('SIGINT')
    expect(await exited).toEqual([130, null])
    await gone
  })

  it('stores the failure of a handler as the failure of the letter', async () => {
    const { cwd, store } = aWorkFolder()
    const code = `process.stderr.write('no such customer', () => process.exit(65))`
    writeFileSync(
      join(cwd, 'redrive.yaml'),
      JSON.stringify({ store, handlers: { a: { command: [process.execPath, '-e', code] } } }),
    )
    await enqueue(store, [['a', 1]])
    const { child, logged, exited } = worker(cwd)
    expect(await logged('letter parked')).toMatchObject([
      { category: 'validation', error: expect.stringContaining('no such customer') as string },
    ])
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })

  it.skipIf(redis.missing)(
    `exits on SIGTERM with an open mailbox${redis.missing ? ` (${redis.missing})` : ''}`,
    async () => {
      const { cwd, store } = aWorkFolder()
      const place = redisPlace(redis.url)
      const url = `${redis.url}/?prefix=${place.name}#orders`
      writeFileSync(
        join(cwd, 'redrive.yaml'),
        JSON.stringify({ store, handlers: { a: { mailbox: { url } } } }),
      )
      await enqueue(store, [['a', 1]])
      const { child, logged, exited } = worker(cwd)
      await logged('letter resolved')
      child.kill('SIGTERM')
      expect(await exited).toEqual([0, null])
      await place.clear()
    },
  )

  it.each<[string, string, number, string]>([
    [
      'no handler is configured',
      'maxRetries: 1',
      2,
      'INVALID_CONFIG: no handler is configured in redrive.yaml',
    ],
    ['a key is unknown', 'maxRetires: 1', 2, 'did you mean "maxRetries"?'],
    ['the store is in memory', 'store: "memory:"\nhandlers: { a: { command: [x] } }', 2, 'memory:'],
    [
      'the store cannot be opened',
      'store: sqlite:/nowhere/at/all.db\nhandlers: { a: { command: [x] } }',
      2,
      'INVALID_CONFIG',
    ],
    [
      'the store is unreachable',
      'store: postgres://127.0.0.1:1/db\nhandlers: { a: { command: [x] } }',
      8,
      'STORE_UNAVAILABLE',
    ],
  ])('exits without starting when %s', async (_, text, exit, says) => {
    const { cwd } = aWorkFolder()
    writeFileSync(join(cwd, 'redrive.yaml'), text)
    const ran = await redrive(['work'], { cwd })
    expect(ran.exit).toBe(exit)
    expect(ran.err).toContain(says)
  })

  it.each(['dlq_enabled', 'dlq_retry_processor_enabled'])(
    'exits with a message when %s is false',
    async (key) => {
      const { cwd } = aWorkFolder()
      writeFileSync(join(cwd, 'redrive.yaml'), 'handlers: { a: { command: [x] } }')
      const { out, err, exit } = await redrive(['work', '--set', `${key}=false`], { cwd })
      expect({ out, err, exit }).toEqual({
        out: `${key} is false: nothing to do\n`,
        err: '',
        exit: 0,
      })
    },
  )
})
