import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text as readText } from 'node:stream/consumers'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from '../../../src/api/client.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { spawn, type ChildProcess } from '../../processes.ts'
import {
  aFolder,
  aStoreFile,
  main,
  plainEnv,
  redrive,
  startRedrive,
  type Ran,
  type Started as StartedRedrive,
} from '../run-cli.ts'
import { waitFor } from '../../wait-for.ts'

const folder = aFolder()

const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Started {
  child: ChildProcess
  url: string
  /** The address that signs in a browser. */
  page: string
  token: string
}

function start(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', ...args], {
    cwd: folder,
    env: plainEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  return child
}

async function addressOf(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const { message, url } = JSON.parse(line) as { message: string; url?: string }
    if (message === 'server started' && url !== undefined) {
      child.stdout!.resume()
      return url
    }
  }
  throw new Error('the server ended before it listened')
}

/** A server in this process, which is stopped after the test. */
interface Served extends Pick<Started, 'url' | 'page' | 'token'> {
  stop: (signal: NodeJS.Signals) => Promise<Ran>
}

const startedUrl = /"url":"([^"]+)"[^\n]*"server started"/

function startHere(args: readonly string[], env: NodeJS.ProcessEnv = {}): StartedRedrive {
  const command = startRedrive(['serve', ...args], { cwd: folder, env })
  let stopped: Promise<Ran> | undefined
  const stop = (signal: NodeJS.Signals): Promise<Ran> => (stopped ??= command.stop(signal))
  onTestFinished(async () => void (await stop('SIGTERM')))
  return { ...command, stop }
}

/** Starts a server in this process on a free port, and reads its address and its token. */
async function serveHere(args: readonly string[]): Promise<Served> {
  const { stdout, stderr, stop } = startHere(['--port', '0', ...args])
  const url = await stdout.waitFor(startedUrl)
  const page = await stderr.waitFor(/http:\S+/)
  const token = await stderr.waitFor(/rdr_[\w-]+/)
  return { url, page, token, stop }
}

/** Starts a server as a process on a free port, and reads its address and its token. */
async function serve(args: readonly string[]): Promise<Started> {
  const child = start(args)
  const url = await addressOf(child)
  let page: string | undefined
  for await (const line of createInterface({ input: child.stderr! })) {
    page ??= /http:\S+/.exec(line)?.[0]
    const token = /rdr_[\w-]+/.exec(line)?.[0]
    if (page !== undefined && token !== undefined) return { child, url, page, token }
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

  it('serves its metrics, which measure the store by default', async () => {
    const store = await aStoreFile(folder, [aLetter({ queue: 'mail' })])
    const { url, token, stop } = await serveHere(['--store', store])
    const metrics = await createClient({ url, token }).scrapeMetrics()
    expect(metrics).toContain('redrive_letters{queue="mail",state="pending"} 1')
    expect(metrics).toMatch(/^redrive_store_call_duration_seconds_count\{method="\w+"\} [1-9]/m)
    expect(metrics).toMatch(/^nodejs_eventloop_lag_seconds /m)
    expect(await stop('SIGTERM')).toMatchObject({ exit: 0 })
  })

  it('listens where the configuration says, without a token if there is an identity provider', async () => {
    const file = join(folder, 'server.yaml')
    writeFileSync(
      file,
      `server:
  host: 0.0.0.0
  port: 0
  publicUrl: http://127.0.0.1:7400
  oidc:
    issuer: http://127.0.0.1:1
    clientId: redrive
    clientSecret: { env: OIDC_SECRET }
`,
    )
    const store = await aStoreFile(folder, [])
    const command = startHere(['--config', file, '--store', store], { OIDC_SECRET: 'hush-1' })
    const url = await command.stdout.waitFor(startedUrl)
    // Nothing listens at the address of the provider.
    const page = await fetch(new URL('/login/oidc', url.replace('0.0.0.0', '127.0.0.1')))
    expect(page.status).toBe(503)
    expect(await page.text()).toContain('http://127.0.0.1:1 cannot be reached')
    await command.stdout.waitFor(/"request failed"/)
    const { out, err } = await command.stop('SIGTERM')
    expect(out).toContain('caused by: TypeError: fetch failed')
    expect(out + err).not.toMatch(/rdr_|hush-1/)
  })

  it('prints an address with a code that signs in one browser', async () => {
    const { url, page } = await serveHere(['--store', await aStoreFile(folder, [])])
    const [address, code] = page.split('/#code=') as [string, string]
    expect(address).toBe(url)
    const signIn = (): Promise<Response> =>
      fetch(`${url}/api/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code }),
      })
    const first = await signIn()
    expect(await first.json()).toMatchObject({ name: 'admin', role: 'admin' })
    expect((await signIn()).status).toBe(401)
    const cookie = first.headers.getSetCookie()[0]!.split(';')[0]!
    expect((await fetch(`${url}/api/letters`, { headers: { cookie } })).status).toBe(200)
  })

  it('prints no secret if the store has tokens', async () => {
    const store = await aStoreFile(folder, [])
    await redrive(['tokens', 'create', 'mia', '--role', 'admin', '--store', store])
    const { stdout, stop } = startHere(['--port', '0', '--store', store])
    expect(await stdout.waitFor(startedUrl)).toMatch(/^http:/)
    expect(await stop('SIGTERM')).toMatchObject({ err: '', exit: 0 })
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
    await waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(503))
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
    await waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200))
    child.kill('SIGTERM')
    await waitFor(() => expect(fetch(`${url}/readyz`)).rejects.toThrow('fetch failed'))
    child.kill('SIGTERM')
    expect(await exited).toEqual([130, null])
    await silent.closed
  })

  it.each([
    [['--stop-delay', 'soon'], '--stop-delay must be a duration'],
    [['--host', '0.0.0.0'], 'is not a loopback address'],
    [['--host', '203.0.113.7', '--demo'], 'is not a loopback address'],
    [['--port', '99999'], '--port must be a number from 0 to 65535'],
    [['--port', '-1'], '--port must be a number from 0 to 65535'],
    [['--port', 'http'], '--port must be a number from 0 to 65535'],
    [['--store', 'memory:'], 'loses its letters'],
    [['--prot', '7400'], "unknown option '--prot'"],
    [['--config', 'missing.yaml'], 'missing.yaml'],
    [['--config', '.'], 'is a folder'],
  ])('refuses %j', async (args, message) => {
    const { err, exit } = await redrive(['serve', ...args], { cwd: folder })
    expect(err).toContain(message)
    expect(exit).toBe(2)
  })

  it('refuses a configuration that is no YAML, by line', async () => {
    const config = join(folder, 'broken.yaml')
    writeFileSync(config, 'store: [')
    const { err, exit } = await redrive(['serve', '--config', config], { cwd: folder })
    expect(err).toContain('broken.yaml')
    expect(exit).toBe(2)
  })

  it('refuses a port that is in use, and names another one', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { err, exit } = await redrive(['serve', '--port', String(port)], { cwd: folder })
    other.close()
    expect(err).toContain(`port ${port} of 127.0.0.1 is in use`)
    expect(err).toMatch(/such as --port \d+/)
    expect(exit).toBe(2)
  })
})

describe('serve --demo', () => {
  it(
    'has letters of every state, a group, a plan, an alert and notes within a minute',
    { timeout: 180_000 },
    async () => {
      const { url, token, child } = await serve(['--demo'])
      const client = createClient({ url, token })
      const seen = new Set<string>()
      await waitFor(
        async () => {
          const { states } = await client.getStatistics()
          for (const [state, count] of Object.entries(states)) if (count > 0) seen.add(state)
          expect(seen.size).toBe(6)
          const [plan] = await client.listBulkActions()
          expect(plan).toMatchObject({ state: 'planned', by: 'demo-operator' })
          expect(await client.listAlerts()).toMatchObject([{ name: 'many-parked' }])
          const { items } = await client.listGroups()
          const group = items.find(({ queue }) => queue === 'index-order')
          expect(group).toMatchObject({ assignee: 'search-team' })
          const { fingerprint } = group!
          expect((await client.getGroup({ fingerprint })).notes).toHaveLength(1)
          expect((await client.listLetters({ tenant: 'acme' })).items).not.toEqual([])
        },
        { timeout: 150_000, interval: 250 },
      )
      child.kill('SIGINT')
      expect(await once(child, 'exit')).toEqual([130, null])
    },
  )
})
