// Resources of the machine for the private servers: folders, users, ports, processes.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const root: string = dirname(dirname(import.meta.dirname))

/** Jars and the state file: outside of git, and kept when servers stop. */
export const home: string = join(root, 'node_modules', '.cache', 'redrive-servers')

/** The user of a process. Default: the user of this process. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

export const isRoot: boolean = process.getuid?.() === 0

/** PostgreSQL refuses to run as root, so root runs it as the user of its package. */
export function postgresAccount(): Account {
  if (!isRoot) return {}
  const readId = (flag: string): number =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: readId('-u'), gid: readId('-g') }
}

/** Whether all users may access a folder through all of its parents. */
function isOpenToAll(folder: string): boolean {
  const parent = dirname(folder)
  return (statSync(folder).mode & 0o001) !== 0 && (parent === folder || isOpenToAll(parent))
}

/**
 * The parent of data folders: next to the jars, or in the temp folder if other users cannot access
 * the checkout.
 */
export function dataHome(): string {
  mkdirSync(home, { recursive: true })
  const real = realpathSync(home)
  if (!isRoot || isOpenToAll(real)) return real
  const hash = createHash('sha256').update(real).digest('hex').slice(0, 12)
  const folder = join(realpathSync(tmpdir()), `redrive-servers-${hash}`)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  if (statSync(folder).uid !== 0) throw new Error(`${folder} belongs to another user; remove it`)
  return folder
}

/** The path of a program, or undefined. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const path = (process.env['PATH'] ?? '').split(delimiter)
  for (const folder of [...folders, ...path, '/usr/sbin', '/usr/local/sbin']) {
    const file = join(folder, name)
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      continue
    }
  }
  return undefined
}

/** Runs a program; an error contains its output. */
export function run(file: string, args: readonly string[], account: Account = {}): string {
  try {
    return execFileSync(file, args, {
      ...account,
      cwd: '/',
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 64 * 1024 * 1024,
    })
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    const output = stripVTControlCharacters(`${stdout}\n${stderr}`).trim() || String(error)
    const last = output.split('\n').slice(-8).join('\n')
    throw new Error(`${file} failed: ${last}`, { cause: error })
  }
}

/**
 * A process that outlives this one, and a part of its command line, to detect a reused process id.
 */
export interface Process {
  readonly pid: number
  readonly mark: string
}

/** How a server is started. The command line contains its folder, which identifies the process. */
export interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly folder: string
  readonly account?: Account
  /** Environment variables in addition to our own. */
  readonly environment?: Readonly<Record<string, string>>
}

/** Starts a server that outlives this process. Its output goes to the log file. */
export function launch(command: Command, log: string): Process {
  const { file, args, folder, account, environment } = command
  const out = openSync(log, 'a')
  const child = spawn(file, args, {
    ...account,
    cwd: '/',
    env: { ...process.env, ...environment },
    detached: true,
    stdio: ['ignore', out, out],
  })
  closeSync(out)
  child.on('error', () => {})
  child.unref()
  if (child.pid === undefined) throw new Error(`${file} cannot be started`)
  return { pid: child.pid, mark: folder }
}

export function commandLine(pid: number): string {
  try {
    if (existsSync('/proc/self/cmdline'))
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

/** The ids of the live children of a process. */
export function childrenOf(pid: number): number[] {
  const rows = existsSync('/proc/self/stat')
    ? readdirSync('/proc').flatMap((name) => {
        try {
          // The parent is the second field after the name, which may contain spaces and
          // parentheses.
          const stat = readFileSync(`/proc/${Number(name)}/stat`, 'utf8')
          return [[Number(name), Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2])]]
        } catch {
          return []
        }
      })
    : execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).map(Number))
  return rows.filter(([, parent]) => parent === pid).map(([child]) => child!)
}

export function isAlive({ pid, mark }: Process): boolean {
  return commandLine(pid).includes(mark)
}

/** Signals a process. False if it is gone or its id belongs to another process. */
export function signal(target: Process, name: NodeJS.Signals): boolean {
  if (!isAlive(target)) return false
  try {
    process.kill(target.pid, name)
    return true
  } catch {
    return false
  }
}

/** Polls until the check is true; the error names what did not happen. */
export async function until(
  what: string,
  check: () => boolean | Promise<boolean>,
  seconds: number,
): Promise<void> {
  const end = performance.now() + seconds * 1000
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`${what} within ${seconds} s`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Sends one message to a local port and returns the first chunk of the answer. */
export function sendMessage(port: number, message: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1')
    socket.setTimeout(2000, () => socket.destroy(new Error(`no answer from port ${port}`)))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`port ${port} closed`)))
    socket.once('data', (data) => {
      resolve(data.toString())
      socket.destroy()
    })
    socket.write(message)
  })
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/**
 * The preferred port, or the next free one. The bus port of a cluster, 10000 above, must be free
 * too.
 */
export async function freePort(preferred: number, taken: ReadonlySet<number>): Promise<number> {
  for (let port = preferred; port < preferred + 40; port += 1) {
    if (taken.has(port) || !(await isFree(port))) continue
    if (await isFree(port + 10_000)) return port
  }
  throw new Error(`no free port at or above ${preferred}`)
}
