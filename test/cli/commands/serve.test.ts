import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text as readText } from 'node:stream/consumers'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { createClient } from '../../../src/api/client.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { aFolder, aStoreFile, plainEnv, redrive } from '../run-cli.ts'

const main = join(import.meta.dirname, '../../../src/cli/main.ts')
const folder = aFolder()

const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Started {
  child: ChildProcess
  url: string
  token: string
}

/** Starts a server on a free port, and reads its address and its token. */
async function serve(args: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', ...args], {
    cwd: folder,
    env: plainEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let url: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    const { message, url: address } = JSON.parse(line) as { message: string; url?: string }
    if (message !== 'server started') continue
    url = address
    break
  }
  for await (const line of createInterface({ input: child.stderr })) {
    const token = /rdr_[\w-]+/.exec(line)?.[0]
    if (url !== undefined && token !== undefined) return { child, url, token }
  }
  throw new Error('the server ended before it printed its token')
}

/** Sends the head of a request with a body, and leaves the body to the test. */
function openSlowBody(
  url: string,
  token: string,
  path: string,
  type: string,
): {
  write: (text: string) => void
  end: (text: string) => void
  response: Promise<string>
  closed: Promise<unknown>
} {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n` +
      `content-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`,
  )
  const write = (text: string): void =>
    void socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
  const end = (text: string): void => {
    write(text)
    socket.write('0\r\n\r\n')
  }
  const closed = once(socket, 'close')
  return { write, end, response: readText(socket), closed }
}

describe('serve', () => {
  it('serves the letters of a store to its token, and stops on SIGTERM', async () => {
    const letter = aLetter()
    const store = await aStoreFile(folder, [letter])
    const { child, url, token } = await serve(['--store', store])
    const client = createClient({ url, token })
    expect((await client.listLetters()).items.map(({ id }) => id)).toEqual([letter.id])
    expect(await client.getReadiness()).toEqual({ ok: true })
    const stranger = createClient({ url, token: token.replace(/.$/, '!') })
    await expect(stranger.listLetters()).rejects.toMatchObject({ problem: { status: 401 } })
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('on SIGTERM says that it is not ready, ends streams, finishes requests, and exits', async () => {
    const store = await aStoreFile(folder, [])
    const { child, url, token } = await serve(['--store', store, '--stop-delay', '10s'])
    const exited = once(child, 'exit')
    const client = createClient({ url, token })
    const failure = (payload: number): string =>
      JSON.stringify({ queue: 'orders', json: payload, error: { message: 'x' } })
    // A client that never sends its body, and one that sends it while the server stops.
    const silent = openSlowBody(url, token, '/api/capture', 'application/json')
    const slow = openSlowBody(url, token, '/api/capture', 'application/x-ndjson')
    slow.write(`${failure(1)}\n`)
    const headers = { authorization: `Bearer ${token}` }
    const stream = await fetch(`${url}/api/events`, { headers })
    const events = stream.text()
    child.kill('SIGTERM')
    await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(503))
    expect((await fetch(`${url}/api/events`, { headers })).status).toBe(503)
    expect((await fetch(`${url}/livez`)).status).toBe(200)
    expect((await client.listLetters()).items).toEqual([])
    slow.end(`${failure(2)}\n`)
    expect(await slow.response).toMatch(/^HTTP\/1\.1 200 [^]*"id"[^]*"id"/)
    expect(await exited).toEqual([0, null])
    await silent.closed
    expect(await events).toContain('retry: ')
  })

  it('exits at once on a second signal', async () => {
    const store = await aStoreFile(folder, [])
    const { child, url, token } = await serve(['--store', store])
    const exited = once(child, 'exit')
    const silent = openSlowBody(url, token, '/api/capture', 'application/json')
    await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200))
    child.kill('SIGTERM')
    await vi.waitFor(() => expect(fetch(`${url}/readyz`)).rejects.toThrow('fetch failed'))
    child.kill('SIGTERM')
    expect(await exited).toEqual([130, null])
    await silent.closed
  })

  it.each([
    [['--stop-delay', 'soon'], '--stop-delay must be a duration'],
    [['--host', '0.0.0.0'], 'is not a loopback address'],
    [['--port', '99999'], '--port must be a number from 0 to 65535'],
    [['--store', 'memory:'], 'loses its letters'],
  ])('refuses %j', async (args, message) => {
    const { err, exit } = await redrive(['serve', ...args], { cwd: folder })
    expect(err).toContain(message)
    expect(exit).toBe(2)
  })
})
