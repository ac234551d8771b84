import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { capture, type Target } from '../../load/capture.ts'
import { httpClient } from '../../load/http-client.ts'
import { compareWithStore, Ledger, type Comparison } from '../../load/ledger.ts'
import { createToken, startServer, type ServerProcess } from '../../load/server-process.ts'
import { chance } from '../chance.ts'
import { pause } from '../child.ts'
import { createEnvironment } from '../environment.ts'

export interface ServerCrashSettings {
  /** `sqlite:FILE`, `postgres` for a private server, or a URL. Default: a new file. */
  store?: string
  seconds: number
  clients: number
  seed: number
  /** How the server is ended. `both`: mostly killed. */
  signals: 'kill' | 'terminate' | 'both'
  /** Plants a server that acknowledges before the store has answered. */
  hasBug: boolean
}

export interface ServerCrashResult extends Comparison {
  kills: number
  terminations: number
  acknowledged: number
  unanswered: number
  statuses: Record<string, number>
  /** What must not happen, besides lost and repeated letters. */
  problems: string[]
}

const bug = new URL('./acknowledge-early.ts', import.meta.url)
const shareOfKills = 0.7
/** A planted bug shows at once. */
const waitWithBugMs = 1000

/**
 * Ends a server again and again while clients capture. Half of the clients send each failure until
 * it is acknowledged, with an Idempotency-Key; the others send it once.
 */
export async function crashServer(settings: ServerCrashSettings): Promise<ServerCrashResult> {
  const { clients, hasBug } = settings
  const folder = mkdtempSync(join(tmpdir(), 'redrive-server-'))
  const environment = await createEnvironment(settings.store, folder, 0)
  try {
    const { url: store } = environment
    const token = await createToken(store)
    const start = (): Promise<ServerProcess> =>
      startServer({ store, folder, ...(hasBug ? { preload: bug } : {}) })
    const ledger = new Ledger()
    let isOver = false
    const server = await start()
    const target: Target = { client: httpClient(server.url, token, clients) }
    const running = Array.from({ length: clients }, (_, number) =>
      captureUntil({ target, ledger, name: `c${number}`, isKeyed: number % 2 === 0 }, () => isOver),
    )
    const ended = await endAgainAndAgain(settings, { server, start, target, token, ledger })
    isOver = true
    await Promise.all(running)
    const waitMs = hasBug ? waitWithBugMs : undefined
    const comparison = await compareWithStore(store, ledger, waitMs)
    target.client.close()
    await ended.server.end('SIGTERM')
    return {
      ...comparison,
      kills: ended.kills,
      terminations: ended.terminations,
      acknowledged: ledger.acknowledged.size,
      unanswered: ledger.unanswered.size,
      statuses: Object.fromEntries(ledger.statuses),
      problems: ledger.problems,
    }
  } finally {
    await environment.end(false)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function captureUntil(
  options: { target: Target; ledger: Ledger; name: string; isKeyed: boolean },
  isOver: () => boolean,
): Promise<void> {
  const { name, ...rest } = options
  // A request whose outcome is unknown is repeated until it has one, also after the last restart.
  for (let n = 0; !isOver(); n++)
    await capture({ ...rest, key: `${name}-${n}`, isOver: () => false })
}

interface Running {
  server: ServerProcess
  start: () => Promise<ServerProcess>
  target: Target
  token: string
  ledger: Ledger
}

/** Returns the server that runs in the end. */
async function endAgainAndAgain(
  { seconds, clients, seed, signals }: ServerCrashSettings,
  { server: first, start, target, token, ledger }: Running,
): Promise<{ server: ServerProcess; kills: number; terminations: number }> {
  const dice = chance(seed)
  const untilMs = performance.now() + seconds * 1000
  let server = first
  let kills = 0
  let terminations = 0
  do {
    await waitForCaptures(ledger, clients)
    await pause(dice.between(0, 500))
    const isKill = signals === 'both' ? dice.next() < shareOfKills : signals === 'kill'
    const code = await server.end(isKill ? 'SIGKILL' : 'SIGTERM')
    if (isKill) kills += 1
    else terminations += 1
    if (!isKill && code !== 0) ledger.problems.push(`SIGTERM ended the server with code ${code}`)
    ledger.problems.push(...server.errors())
    target.client.close()
    server = await start()
    target.client = httpClient(server.url, token, clients)
  } while (performance.now() < untilMs)
  return { server, kills, terminations }
}

/** Waits until as many captures were acknowledged as there are clients, so that all are busy. */
async function waitForCaptures(ledger: Ledger, clients: number): Promise<void> {
  const before = ledger.acknowledged.size
  while (ledger.acknowledged.size < before + clients) await pause(10)
}
