import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { httpClient, type HttpClient, type HttpRequest } from '../../test/load/http-client.ts'
import {
  createToken,
  startProcess,
  startServer,
  type ServerProcess,
} from '../../test/load/server-process.ts'
import { median, quantile, rate, result, type Bench, type Result } from '../harness.ts'
import { failure, operation } from '../sample.ts'
import { encrypted } from './encryption.ts'
import { fillGroups } from './groups.ts'

const inFlight = 64
const ownCapture = '/api/capture'
const bareServer = fileURLToPath(new URL('../yardsticks/bare-server.ts', import.meta.url))

/**
 * Captures and pages over HTTP. Captures are compared with a server that only inserts rows into the
 * same engine, in the same round. Both run in processes of their own.
 */
export async function server(bench: Bench): Promise<Result[]> {
  if (bench.kind !== 'sqlite' && bench.kind !== 'postgres') return []
  const captures = await measureCaptures(bench)
  await bench.clear()
  const pages = await measurePages(bench)
  await bench.clear()
  return [...captures, ...pages, ...(await encrypted(bench))]
}

async function measureCaptures(bench: Bench): Promise<Result[]> {
  const { kind, sizes } = bench
  const bodies = Array.from({ length: 1000 }, (_, n) => captureBody(n))
  const lines = Array.from({ length: sizes.httpLines }, (_, n) => `${bodies[n % 1000]!}\n`)
  const allLines = Buffer.from(lines.join(''))
  const one = { bare: [] as number[], own: [] as number[], keyed: [] as number[] }
  const many = { bare: [] as number[], own: [] as number[] }
  for (let round = 0; round < sizes.rounds; round++) {
    await bench.clear()
    await withBareServer(bench, async (client) => {
      const single = (n: number): HttpRequest => post('/one', bodies[n % 1000]!)
      await sendAll(client, sizes.httpCaptures / 2, single)
      one.bare.push(
        await timedRate(sizes.httpCaptures, () => sendAll(client, sizes.httpCaptures, single)),
      )
      many.bare.push(await linesRate(client, '/lines', allLines, lines.length))
    })
    await withServer(bench, 'captures', async (client) => {
      const single = (n: number): HttpRequest => post(ownCapture, bodies[n % 1000]!)
      await sendAll(client, sizes.httpCaptures / 2, single)
      one.own.push(
        await timedRate(sizes.httpCaptures, () => sendAll(client, sizes.httpCaptures, single)),
      )
      many.own.push(await linesRate(client, ownCapture, allLines, lines.length))
      const keyed = (n: number): HttpRequest => ({
        ...single(n),
        headers: { 'idempotency-key': `key-${n}` },
      })
      one.keyed.push(await timedRate(sizes.single, () => sendAll(client, sizes.single, keyed)))
    })
    const last = (values: number[]): number => Math.round(values.at(-1)!)
    bench.log(
      `  round ${round + 1}: bare ${last(one.bare)}/s, capture ${last(one.own)}/s, with keys ${last(one.keyed)}/s, bare lines ${last(many.bare)}/s, captured lines ${last(many.own)}/s`,
    )
  }
  const ratio = (own: number[], bare: number[]): number =>
    median(own.map((value, round) => value / bare[round]!))
  return [
    result(kind, `bare insert over HTTP c${inFlight}`, median(one.bare), '/s'),
    result(kind, `capture over HTTP c${inFlight}`, median(one.own), '/s'),
    result(kind, `capture with an Idempotency-Key c${inFlight}`, median(one.keyed), '/s'),
    result(kind, 'bare insert of lines', median(many.bare), '/s'),
    result(kind, 'capture of lines', median(many.own), '/s'),
    result(kind, 'capture / bare insert', ratio(one.own, one.bare), 'x', { atLeast: 0.3 }),
    result(kind, 'captured lines / bare lines', ratio(many.own, many.bare), 'x', { atLeast: 0.35 }),
  ]
}

/** Times of pages, one request at a time. */
async function measurePages(bench: Bench): Promise<Result[]> {
  const { kind, sizes } = bench
  await fillGroups(bench)
  return withServer(bench, 'groups', async (client) => {
    const results: Result[] = []
    for (const [what, path] of [
      ['page of 50 letters', '/api/letters?limit=50'],
      ['page of 20 groups', '/api/groups?limit=20'],
    ] as const) {
      await pageTimes(client, path, sizes.lookups)
      const times = await pageTimes(client, path, 2 * sizes.lookups)
      const over = `${what} over HTTP at ${sizes.largeBacklog} letters`
      results.push(result(kind, `${over}, p50`, median(times), 'ms'))
      results.push(result(kind, `${over}, p99`, quantile(times, 0.99), 'ms', { atMost: 20 }))
    }
    return results
  })
}

async function pageTimes(client: HttpClient, path: string, count: number): Promise<number[]> {
  const times: number[] = []
  let cursor: string | undefined
  for (let n = 0; n < count; n++) {
    const next = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const startMs = performance.now()
    const { status, body } = await client.send({ method: 'GET', path: `${path}${next}` })
    times.push(performance.now() - startMs)
    if (status !== 200) throw new Error(`${path} answered ${status}: ${body}`)
    cursor = (JSON.parse(body) as { cursor?: string }).cursor
  }
  return times
}

async function withBareServer(
  bench: Bench,
  work: (client: HttpClient) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    const started = await startProcess(folder, [bareServer, bench.location.url('bare')])
    await withClient(started, '', work)
  })
}

async function withServer<T>(
  bench: Bench,
  name: string,
  work: (client: HttpClient) => Promise<T>,
): Promise<T> {
  const store = bench.location.url(name)
  return withFolder(async (folder) => {
    const token = await createToken(store)
    return withClient(await startServer({ store, folder }), token, work)
  })
}

async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-server-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function withClient<T>(
  started: ServerProcess,
  token: string,
  work: (client: HttpClient) => Promise<T>,
): Promise<T> {
  const client = httpClient(started.url, token, inFlight)
  try {
    return await work(client)
  } finally {
    client.close()
    await started.end('SIGTERM')
  }
}

function captureBody(n: number): string {
  const { type: queue, payload } = operation(n)
  const { name, message, stack } = failure(n)
  const { code } = failure(n) as Error & { code: string }
  return JSON.stringify({ queue, json: payload, error: { name, message, code, stack } })
}

const post = (path: string, body: string): HttpRequest => ({ method: 'POST', path, body })

/** Sends `count` requests, always with 64 in flight. */
async function sendAll(
  client: HttpClient,
  count: number,
  requestOf: (n: number) => HttpRequest,
): Promise<void> {
  let next = 0
  const call = async (): Promise<void> => {
    while (next < count) {
      const { status, body } = await client.send(requestOf(next++))
      if (status !== 201) throw new Error(`the server answered ${status}: ${body}`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, call))
}

async function timedRate(count: number, work: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await work()
  return rate(count, performance.now() - startMs)
}

/** Sends all lines in one request, twice; the first one is a warm-up. */
async function linesRate(
  client: HttpClient,
  path: string,
  body: Buffer,
  count: number,
): Promise<number> {
  const send = async (): Promise<void> => {
    const headers = { 'content-type': 'application/x-ndjson' }
    const response = await client.send({ method: 'POST', path, body, headers })
    const answered = response.body.match(/"line":/g)?.length
    if (answered !== count || response.body.includes('"problem"'))
      throw new Error(`the server answered ${response.status}: ${response.body.slice(0, 500)}`)
  }
  await send()
  return timedRate(count, send)
}
