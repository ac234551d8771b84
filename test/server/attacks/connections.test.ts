import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linesType } from '../../../src/api/endpoint.ts'
import { problemType } from '../../../src/api/problem.ts'
import { problemSchema } from '../../../src/api/schemas/problem.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { aStoreFile, plainEnv } from '../../cli/run-cli.ts'
import { aFolder } from '../../folders.ts'
import { spawn, type ChildProcess } from '../../processes.ts'
import { sendRaw } from '../send-raw.ts'
import { snapshotOf } from './snapshot.ts'

const main = join(import.meta.dirname, '../../../src/cli/main.ts')
const folder = aFolder()
const letter = aLetter()
const gigabyte = 1024 ** 3
const megabyte = 1024 ** 2
const maxGrowth = 200 * megabyte
const chunksHeader = 'transfer-encoding: chunked'

let child: ChildProcess
let store: string
let url: string
let token: string
/** Answers to requests that do not end. They begin first, since the server waits long for them. */
let slowAnswers: { body: Promise<string>; headers: Promise<string> }
const logLines: string[] = []

beforeAll(async () => {
  store = await aStoreFile(folder, [letter])
  child = spawn(process.execPath, [main, 'serve', '--port', '0', '--store', store], {
    cwd: folder,
    env: plainEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log = createInterface({ input: child.stdout! })
  log.on('line', (line) => logLines.push(line))
  for await (const line of createInterface({ input: child.stderr! })) {
    url ??= /http:[^\s#]+(?=\/)/.exec(line)?.[0] as string
    token ??= /rdr_[\w-]+/.exec(line)?.[0] as string
    if (token !== undefined) break
  }
  // The first request loads what later ones need, so that it does not count as growth.
  await fetch(`${url}/api/letters`, { headers: { authorization: `Bearer ${token}` } })
  const body = head('POST', '/api/capture', 'content-type: application/json', chunksHeader)
  slowAnswers = {
    body: sendSlowly(body, '1\r\na\r\n'),
    headers: sendSlowly('GET /api/letters HTTP/1.1\r\nhost: x\r\n', 'x: y\r\n'),
  }
}, 120_000)

afterAll(() => child.kill('SIGKILL'))

/** Memory of the server in bytes. */
function memory(): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))!
  return Number(kilobytes) * 1024
}

async function open(): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  // The server may end the connection while the attack still writes.
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Everything that the server sends until it ends the connection. */
function received(socket: Socket): Promise<string> {
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part))
  return new Promise((resolve) =>
    socket.once('close', () => resolve(Buffer.concat(parts).toString())),
  )
}

/** Sends bytes, and returns what the server answers until it ends the connection. */
async function exchange(bytes: string | Buffer): Promise<string> {
  const socket = await open()
  const answer = received(socket)
  socket.write(bytes)
  return answer
}

/** Sends a start, and then a part every 100 ms until the server ends the connection. */
async function sendSlowly(start: string, part: string): Promise<string> {
  const socket = await open()
  const answer = received(socket)
  socket.write(start)
  const timer = setInterval(() => socket.write(part), 100)
  try {
    return await answer
  } finally {
    clearInterval(timer)
  }
}

const head = (method: string, path: string, ...headers: string[]): string =>
  [`${method} ${path} HTTP/1.1`, 'host: x', ...headers, '', ''].join('\r\n')
const withToken = (): string => `authorization: Bearer ${token}`

function expectProblem(answer: string, status: number): void {
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(answer.toLowerCase()).toContain(`content-type: ${problemType}`)
  const body = answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)
  expect(problemSchema.safeParse(JSON.parse(body)).success).toBe(true)
}

/** Sends up to a gigabyte after the head, as fast as the server reads. Returns the sent bytes. */
async function flood(start: string, chunked: boolean): Promise<{ answer: string; sent: number }> {
  const socket = await open()
  const answer = received(socket)
  socket.write(start)
  const block = Buffer.alloc(megabyte, 0x61)
  const chunk = chunked
    ? Buffer.concat([Buffer.from(`${megabyte.toString(16)}\r\n`), block, Buffer.from('\r\n')])
    : block
  let sent = 0
  const closed = new Promise((resolve) => socket.once('close', resolve))
  while (sent < gigabyte && !socket.destroyed && socket.writable) {
    sent += megabyte
    const drained = new Promise((resolve) => socket.once('drain', resolve))
    if (!socket.write(chunk)) await Promise.race([drained, closed])
  }
  if (!socket.destroyed) socket.end()
  return { answer: await answer, sent }
}

async function expectUnharmed(before: string[]): Promise<void> {
  expect(child.exitCode).toBeNull()
  expect((await fetch(`${url}/livez`)).status).toBe(200)
  expect(await snapshot()).toEqual(before)
}

async function snapshot(): Promise<string[]> {
  const opened = sqliteStore({ path: store.slice('sqlite:'.length) })
  await opened.open()
  try {
    return await snapshotOf(opened)
  } finally {
    await opened.close()
  }
}

const linux = process.platform === 'linux'

// At the same time: the server waits for seconds before it ends some of these connections.
describe.concurrent('bodies of a gigabyte', () => {
  const retry = (): string => `/api/letters/${letter.id}/retry`
  const json = 'content-type: application/json'
  const length = `content-length: ${gigabyte}`

  it.runIf(linux).each<[what: string, start: () => string, chunked: boolean, status: RegExp]>([
    ['with a length', () => head('POST', retry(), withToken(), json, length), false, /^413$/],
    ['in chunks', () => head('POST', retry(), withToken(), json, chunksHeader), true, /^413$/],
    ['without a token', () => head('POST', retry(), json, length), false, /^401$/],
    ['in chunks without a token', () => head('POST', retry(), json, chunksHeader), true, /^401$/],
    ['to no endpoint', () => head('POST', '/api/none', json, chunksHeader), true, /^404$/],
    ['for a session', () => head('POST', '/api/session', json, chunksHeader), true, /^413$/],
    ['with a GET', () => head('GET', '/api/letters', withToken(), length), false, /^\d+$/],
    [
      'compressed',
      () => head('POST', retry(), withToken(), json, chunksHeader, 'content-encoding: gzip'),
      true,
      /^415$/,
    ],
    [
      'as one line without an end',
      () => head('POST', '/api/capture', withToken(), `content-type: ${linesType}`, chunksHeader),
      true,
      /^(200|400|413)$/,
    ],
  ])('%s', { timeout: 120_000 }, async (_, start, chunked, status) => {
    const before = await snapshot()
    const memoryBefore = memory()
    const { answer } = await flood(start(), chunked)
    // A client that still sends when the connection ends may lose the answer.
    if (answer !== '') expect(answer.slice('HTTP/1.1 '.length, 12)).toMatch(status)
    expect(memory() - memoryBefore).toBeLessThan(maxGrowth)
    await expectUnharmed(before)
  })
})

describe('bytes that are not a valid request', () => {
  it.each<[what: string, status: number, bytes: () => string]>([
    [
      'a flood of headers',
      431,
      () => head('GET', '/livez', ...Array.from({ length: 5000 }, (_, n) => `x-${n}: ${n}`)),
    ],
    ['a header of a megabyte', 431, () => head('GET', '/livez', `x: ${'y'.repeat(megabyte)}`)],
    ['a path of a megabyte', 431, () => head('GET', `/${'y'.repeat(megabyte)}`)],
    [
      'two lengths',
      400,
      () => head('POST', '/api/capture', withToken(), 'content-length: 1', 'content-length: 2'),
    ],
    [
      'a length and chunks',
      400,
      () => head('POST', '/api/capture', withToken(), 'content-length: 5', chunksHeader),
    ],
    ['a negative length', 400, () => head('POST', '/api/capture', 'content-length: -1')],
    ['an endless length', 400, () => head('POST', '/x', `content-length: ${'9'.repeat(40)}`)],
    ['a space before the colon', 400, () => head('GET', '/livez', 'x : y')],
    ['a null byte in a header', 400, () => head('GET', '/livez', 'x: a\0b')],
    ['an unknown method', 400, () => head('STEAL', '/api/letters', withToken())],
    ['an unknown version', 400, () => 'GET / HTTP/9.9\r\nhost: x\r\n\r\n'],
    ['no HTTP', 400, () => '\u0016\u0003\u0001\u0002\0\u0001\0\u0001\r\n\r\n'],
    [
      'a broken chunk',
      400,
      () => `${head('POST', '/api/capture', withToken(), chunksHeader)}zz\r\n\r\n`,
    ],
  ])('%s', async (_, status, bytes) => {
    const before = await snapshot()
    expectProblem(await exchange(bytes()), status)
    await expectUnharmed(before)
  })
})

describe('paths and methods', () => {
  it.each([
    ['GET', '/api/../api/letters', 404],
    ['GET', '/api/./letters', 404],
    ['GET', '//api/letters', 404],
    ['GET', '/api//letters', 404],
    ['GET', '/api/letters%2f..%2ftokens', 404],
    ['GET', '/api%2ftokens', 404],
    ['GET', '/api/letters/%2e%2e', 404],
    ['GET', '/api/letters/%252e%252e%252ftokens', 404],
    ['GET', '/api/letters/a%00b', 404],
    ['GET', '/%c0%ae%c0%ae/etc/passwd', 400],
    ['GET', '/API/letters', 404],
    ['GET', '/api/letters/', 400],
    ['GET', '/api/letters;a=b', 404],
    ['TRACE', '/api/letters', 404],
    ['OPTIONS', '/api/letters', 404],
    ['PROPFIND', '/', 404],
    ['PUT', '/api/letters', 404],
    ['DELETE', '/api/letters', 404],
  ])('%s %s: %d', async (method, path, status) => {
    const before = await snapshot()
    const answer = await sendRaw(url, method, path, {
      headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    })
    expect({ status: answer.status, type: answer.headers['content-type'] }).toEqual({
      status,
      type: expect.stringContaining(problemType) as string,
    })
    await expectUnharmed(before)
  })

  it('rejects an id that is too long', async () => {
    const answer = await sendRaw(url, 'GET', `/api/letters/${'x'.repeat(8000)}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(answer.status).toBe(414)
    expect(answer.headers['content-type']).toContain(problemType)
  })

  it('ignores headers that name another method or another path', async () => {
    const answer = await sendRaw(url, 'GET', `/api/letters/${letter.id}`, {
      headers: {
        authorization: `Bearer ${token}`,
        'x-http-method-override': 'DELETE',
        'x-original-url': '/api/tokens',
        'x-forwarded-for': '127.0.0.1',
      },
    })
    expect(JSON.parse(answer.body)).toMatchObject({ id: letter.id, version: 1 })
  })
})

describe('guesses of tokens', () => {
  it('are limited, while the valid token keeps working', async () => {
    const guess = (n: number): Promise<Response> =>
      fetch(`${url}/api/letters`, {
        headers: { authorization: `Bearer rdr_${'a'.repeat(12)}_${String(n).padStart(43, 'b')}` },
      })
    const statuses = new Set<number>()
    for (let n = 0; n < 100; n++) statuses.add((await guess(n)).status)
    expect(statuses).toEqual(new Set([401, 429]))
    const limited = await guess(0)
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
    const valid = await fetch(`${url}/api/letters`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(valid.status).toBe(200)
  })
})

describe('slow requests', () => {
  it('ends the connection of a denied request whose body does not end', async () => {
    expectProblem(await slowAnswers.body, 401)
  }, 120_000)

  it('ends the connection of headers that do not end', async () => {
    expectProblem(await slowAnswers.headers, 408)
  }, 120_000)
})

describe('the log', () => {
  it('has one JSON object on each line, whatever the headers and the paths say', async () => {
    const forged = '{"level":30,"message":"forged"}'
    await sendRaw(url, 'GET', `/api/none/${encodeURIComponent(`\r\n${forged}`)}`, {
      headers: {
        'user-agent': `\u009b2J${forged}`,
        'x-request-id': forged,
        traceparent: forged,
        referer: forged,
      },
    })
    await sendRaw(url, 'GET', '/livez', {})
    for (const line of logLines) {
      const { message } = JSON.parse(line) as { message?: string }
      expect(message).not.toBe('forged')
    }
    expect(logLines.join('\n')).not.toContain(token)
  })
})
