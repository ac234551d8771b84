import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorTable } from '../../src/errors.ts'
import { aFolder } from '../folders.ts'
import { spawn } from '../processes.ts'
import { cells, noCells, type Cell } from './cells.ts'
import type { Report, Request } from './program.ts'
import { missing, prepareServers, type TestServers } from './servers.ts'

/**
 * Maximum time until a process exits after its last refusal. An idle process takes milliseconds.
 */
const boundMs = 5000
/**
 * A process without output for this long hangs and is killed. Allows for a slow start on a busy
 * machine.
 */
const silentMs = 60_000
/** Number of concurrent processes. They spend most of their time starting. */
const maxProcesses = 3
const timeout = 300_000

const env = {
  ...process.env,
  NO_COLOR: '1',
  REDRIVE_STORE: undefined,
  // The emulator of SQS accepts any credentials, but the SDK requires some.
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
}

interface ExitResult {
  out: string
  err: string
  exit: number | null
  /** Null: the process exited by itself. */
  signal: NodeJS.Signals | null
}

const folder = aFolder('redrive-exit')
let servers: TestServers
/** One promise per started process, resolved at its exit: limits the number of processes. */
const running: Promise<unknown>[] = []

/** Runs a program, and kills it only if it hangs. */
async function run(args: readonly string[]): Promise<ExitResult> {
  const turn = Promise.withResolvers<void>()
  const before = running[running.push(turn.promise) - 1 - maxProcesses]
  await before
  const child = spawn(process.execPath, args, {
    cwd: servers.folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const hang = setTimeout(() => child.kill('SIGKILL'), silentMs)
  child.stdout.on('data', () => hang.refresh())
  try {
    const ended = new Promise<Pick<ExitResult, 'exit' | 'signal'>>((end) =>
      child.once('close', (exit, signal) => end({ exit, signal })),
    )
    const [out, err, end] = await Promise.all([text(child.stdout), text(child.stderr), ended])
    return { out, err, ...end }
  } finally {
    clearTimeout(hang)
    turn.resolve()
  }
}

const script = join(import.meta.dirname, 'program.ts')

function requestOf(cell: Cell): Request {
  const { open, url, away = false, options } = cell
  const request: Request = { cell: cells.indexOf(cell), open, url: url(servers), away }
  return options ? { ...request, options: options(servers) } : request
}

const isHere = ({ needs }: Cell): boolean => needs === undefined || missing[needs] === undefined

/**
 * All refusals of one driver run in one process: it exits by itself only if each of them released
 * all resources. If it hangs, each refusal runs in a process of its own, to find the cause.
 */
const groups = new Map<string, Promise<ExitResult>>()
async function exitOf(cell: Cell): Promise<ExitResult> {
  const together = groups.get(`${cell.driver} ${cell.open}`)
  const ended = await together!
  return ended.signal === null ? ended : run([script, JSON.stringify([requestOf(cell)])])
}

const cliScript = join(import.meta.dirname, 'cli-program.ts')
const main = join(import.meta.dirname, '../../src/cli/main.ts')
const storeCells = cells.filter(({ open }) => open === 'store')

/** The CLI on all refused stores of one driver, likewise in one process. */
const cliGroups = new Map<string, Promise<ExitResult>>()
async function cliExitOf(cell: Cell): Promise<ExitResult> {
  const { out, exit, signal } = await cliGroups.get(cell.driver)!
  if (signal !== null || exit !== 0) return run([main, 'list', '--store', cell.url(servers)])
  const ours = storeCells.filter((one) => one.driver === cell.driver && isHere(one))
  const line = out.split('\n')[ours.indexOf(cell)]!
  return { ...(JSON.parse(line) as Omit<ExitResult, 'signal'>), signal }
}

beforeAll(async () => {
  servers = await prepareServers(folder)
  for (const [name, all] of Map.groupBy(cells.filter(isHere), (one) => `${one.driver} ${one.open}`))
    groups.set(name, run([script, JSON.stringify(all.map(requestOf))]))
  for (const [driver, all] of Map.groupBy(storeCells.filter(isHere), (one) => one.driver))
    cliGroups.set(driver, run([cliScript, JSON.stringify(all.map(({ url }) => url(servers)))]))
}, timeout)
afterAll(() => servers?.clear(), timeout)

function expectRefusal(message: string, says: RegExp): void {
  expect(message).toMatch(says)
  expect(message).not.toContain('hunter2')
  expect(message).not.toContain('\n')
}

const title = '$driver $open, $refusal'

describe('a program whose open is refused exits by itself', { concurrent: true, timeout }, () => {
  it.for(cells)(title, async (cell, { skip }) => {
    if (!isHere(cell)) skip(missing[cell.needs!])
    const { out, err, exit, signal } = await exitOf(cell)
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    const reports = lines.filter((line): line is Report => 'way' in line)
    const ours = reports.filter((report) => report.cell === cells.indexOf(cell))
    for (const { way, code, message } of ours) {
      expect(code, `${way}: ${message}`).toBe(cell.code)
      expectRefusal(message, cell.says)
    }
    expect(ours.length).toBeGreaterThan(0)
    expect({ signal, exit, err }).toEqual({ signal: null, exit: 0, err: '' })
    const { wentOnMs } = lines.at(-1) as { wentOnMs: number }
    expect(wentOnMs).toBeLessThan(boundMs)
  })
})

describe('the CLI on a refused store exits by itself', { concurrent: true, timeout }, () => {
  it.for(storeCells)(title, async (cell, { skip }) => {
    if (!isHere(cell)) skip(missing[cell.needs!])
    const { code, says } = cell.cli ?? cell
    const { out, err, exit, signal } = await cliExitOf(cell)
    expect({ signal, exit }, err).toEqual({ signal: null, exit: errorTable[code].exit })
    expect(out).toBe('')
    expect(err).toMatch(/^[^\n]+\n$/)
    expect(err.startsWith(`${code}: `), err).toBe(true)
    expectRefusal(err.trimEnd(), says)
  })
})

describe('refusals that are not in the matrix', () => {
  it.for(noCells)('$driver, $refusal: $why', ({ driver, refusal }) => {
    const titles = cells.map((cell) => `${cell.driver} ${cell.open}, ${cell.refusal}`)
    expect(titles).not.toContain(`${driver}, ${refusal}`)
  })
})
