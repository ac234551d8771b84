import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chance } from '../crash/chance.ts'
import { pause } from '../crash/child.ts'
import { createEnvironment } from '../crash/environment.ts'
import { capture, captureRequest } from './capture.ts'
import { httpClient, type HttpClient } from './http-client.ts'
import { compareWithStore, Ledger, type Comparison } from './ledger.ts'
import {
  createToken,
  startServer,
  type ServerProcess,
  type ServerSettings,
} from './server-process.ts'

export interface LoadSettings {
  /** `sqlite:FILE` or the URL of a server. Default: a new file. */
  store?: string
  seconds: number
  clients: number
  seed: number
  /** Settings of the server, in the form key=value. */
  set?: readonly string[]
}

export interface LoadResult extends Comparison {
  requests: number
  acknowledged: number
  statuses: Record<string, number>
  /** Responses that must not happen. */
  problems: string[]
  /** Milliseconds, by kind of request. */
  latency: Record<string, { p50: number; p99: number }>
  /** Resident memory of the server, once a second. */
  memoryBytes: number[]
}

type Kind = 'capture' | 'list' | 'get' | 'groups' | 'stats'
const shares: [Kind, number][] = [
  ['capture', 0.6],
  ['list', 0.15],
  ['get', 0.1],
  ['groups', 0.1],
  ['stats', 0.05],
]
/** Share of captures that are sent a second time with the same Idempotency-Key. */
const repeatShare = 0.05

/** Starts a server on a new store, and removes both after `work`. */
export async function withServer<T>(
  store: string | undefined,
  work: (server: ServerProcess, client: HttpClient, storeUrl: string) => Promise<T>,
  connections: number,
  options: Pick<ServerSettings, 'set'> = {},
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-load-'))
  const environment = await createEnvironment(store, folder, 0)
  try {
    const token = await createToken(environment.url)
    const server = await startServer({ store: environment.url, folder, ...options })
    const client = httpClient(server.url, token, connections)
    try {
      return await work(server, client, environment.url)
    } finally {
      client.close()
      await server.end('SIGTERM')
    }
  } finally {
    await environment.end(false)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Many clients that capture and read at the same time, each with one request at a time. */
export function load(settings: LoadSettings): Promise<LoadResult> {
  const { clients, seconds, seed } = settings
  return withServer(
    settings.store,
    async (server, client, storeUrl) => {
      const ledger = new Ledger()
      const times = new Map<Kind, number[]>(shares.map(([kind]) => [kind, []]))
      const untilMs = performance.now() + seconds * 1000
      const isOver = (): boolean => performance.now() >= untilMs
      const memoryBytes: number[] = []
      const watch = async (): Promise<void> => {
        for (; !isOver(); await pause(1000)) memoryBytes.push(server.memoryBytes())
      }
      const callers = Array.from({ length: clients }, (_, number) =>
        callUntil({ client, ledger, times, isOver, name: `c${number}`, seed: seed + number }),
      )
      await Promise.all([...callers, watch()])
      const comparison = await compareWithStore(storeUrl, ledger)
      return {
        ...comparison,
        requests: [...ledger.statuses.values()].reduce((sum, count) => sum + count, 0),
        acknowledged: ledger.acknowledged.size,
        statuses: Object.fromEntries(ledger.statuses),
        problems: [...ledger.problems, ...server.errors()],
        latency: Object.fromEntries([...times].map(([kind, all]) => [kind, quantilesOf(all)])),
        memoryBytes,
      }
    },
    clients,
    { set: settings.set ?? [] },
  )
}

interface CallerOptions {
  client: HttpClient
  ledger: Ledger
  times: Map<Kind, number[]>
  isOver: () => boolean
  name: string
  seed: number
}

async function callUntil(options: CallerOptions): Promise<void> {
  const { client, ledger, times, isOver, name, seed } = options
  const dice = chance(seed)
  let lastId: string | undefined
  for (let n = 0; !isOver(); n++) {
    const kind = pickKind(dice.next())
    const startMs = performance.now()
    if (kind === 'capture') {
      const key = `${name}-${n}`
      await capture({ target: { client }, ledger, key, isKeyed: true, isOver: () => false })
      lastId = ledger.acknowledged.get(key)
      if (dice.next() < repeatShare) await repeat(client, ledger, key)
    } else await read(client, ledger, pathOf(kind, lastId))
    times.get(kind)!.push(performance.now() - startMs)
  }
}

async function repeat(client: HttpClient, ledger: Ledger, key: string): Promise<void> {
  const { status, body } = await client.send(captureRequest(key, true))
  ledger.count(status)
  if (status === 201) ledger.acknowledge(key, (JSON.parse(body) as { id: string }).id)
  else ledger.problems.push(`a repeated capture answered ${status}: ${body}`)
}

async function read(client: HttpClient, ledger: Ledger, path: string): Promise<void> {
  const { status, body } = await client.send({ method: 'GET', path })
  ledger.count(status)
  if (status !== 200) ledger.problems.push(`${path} answered ${status}: ${body.slice(0, 300)}`)
}

function pathOf(kind: Exclude<Kind, 'capture'>, id: string | undefined): string {
  if (kind === 'get' && id !== undefined) return `/api/letters/${id}`
  if (kind === 'groups') return '/api/groups?limit=20'
  return kind === 'stats' ? '/api/stats' : '/api/letters?limit=20'
}

function pickKind(roll: number): Kind {
  let sum = 0
  for (const [kind, share] of shares) if (roll < (sum += share)) return kind
  return 'capture'
}

function quantilesOf(times: number[]): { p50: number; p99: number } {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0)
  return { p50: at(0.5), p99: at(0.99) }
}
