// Traces the system calls of processes with strace, and injects faults.
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findProgram } from '../../scripts/servers/machine.ts'
import { runSync, spawn } from '../processes.ts'

/** One system call. Calls of several threads may overlap: `start` and `end` are line numbers. */
export interface Syscall {
  readonly pid: number
  readonly name: string
  /** The file or socket of the first argument, as strace -yy names it. */
  readonly target: string
  /** The arguments as a string: binary bytes are escaped, words can be searched. */
  readonly text: string
  readonly ok: boolean
  readonly start: number
  readonly end: number
}

const program = findProgram('strace')

/** Why tracing is impossible here; undefined if it works. Use with `describe.skipIf`. */
export function lacksStrace(): string | undefined {
  if (process.platform !== 'linux') return 'strace is available on Linux only'
  if (!program) return 'strace is not installed'
  try {
    runSync(program, ['-f', '-o', '/dev/null', '-e', 'trace=fdatasync', 'true'])
    return undefined
  } catch {
    return 'this process may not trace others'
  }
}

/** Why running processes cannot be traced here; undefined if they can. */
export function lacksAttach(): string | undefined {
  const lacking = lacksStrace()
  if (lacking) return lacking
  if (process.getuid?.() === 0) return undefined
  try {
    const scope = readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8').trim()
    return scope === '0' ? undefined : 'only root may trace running processes here'
  } catch {
    return undefined
  }
}

/** Calls that write, sync, receive and send: the same on x64 and arm64. */
const watched =
  'write,writev,pwrite64,pwritev,fsync,fdatasync,read,recvfrom,sendto,sendmsg,openat,close'

export interface Tracing {
  /** Ends the tracing; the processes continue. */
  readonly stop: () => Promise<void>
  /** The traced calls, available after `stop`. */
  readonly calls: () => Syscall[]
}

/** Traces running processes and their children. Resolves once all are traced. */
export async function attach(pids: readonly number[]): Promise<Tracing> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-strace-'))
  const file = join(folder, 'trace')
  const targets = pids.flatMap((pid) => ['-p', String(pid)])
  const args = ['-f', '-yy', '-s', '20000', '-e', `trace=${watched}`, '-o', file, ...targets]
  const strace = spawn(program!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(strace, 'exit')
  const waiting = new Set(pids)
  for await (const line of createInterface(strace.stderr)) {
    // A process that has ended meanwhile needs no tracing.
    const gone = /PTRACE_SEIZE, (\d+)\): No such process/.exec(line)
    waiting.delete(Number((/Process (\d+) attached/.exec(line) ?? gone)?.[1]))
    if (waiting.size === 0) break
  }
  if (waiting.size > 0) {
    rmSync(folder, { recursive: true, force: true })
    throw new Error('strace ended before all processes were traced')
  }
  let trace = ''
  return {
    stop: async () => {
      strace.kill('SIGINT')
      await ended
      trace = readFileSync(file, 'latin1')
      rmSync(folder, { recursive: true, force: true })
    },
    calls: () => readTrace(trace),
  }
}

/** Runs a program under strace. `more` has further arguments of strace, such as `-e inject=…`. */
export async function runTraced(
  command: readonly string[],
  more: readonly string[] = [],
): Promise<{ calls: Syscall[]; output: string; code: number | null }> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-strace-'))
  const file = join(folder, 'trace')
  try {
    const trace = more.some((arg) => arg.startsWith('trace=')) ? [] : ['-e', `trace=${watched}`]
    const args = ['-f', '--seccomp-bpf', '-yy', '-s', '20000', ...trace, ...more, '-o', file]
    const child = spawn(program!, [...args, ...command], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const [code] = (await once(child, 'close')) as [number | null]
    return { calls: readTrace(readFileSync(file, 'latin1')), output, code }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const whole = /^(\d+) +(\w+)\((\d+<(.*?)>(?=[,) (]))?([\s\S]*)$/
const resumed = /^(\d+) +<\.\.\. (\w+) resumed>([\s\S]*)$/

/**
 * A traced thread is stopped until its line is written, so effects of a call come after it. A call
 * that overlaps others has two lines: one for its start and one for its end.
 */
export function readTrace(trace: string): Syscall[] {
  const calls: Syscall[] = []
  const open = new Map<string, { target: string; text: string; start: number }>()
  for (const [at, line] of trace.split('\n').entries()) {
    const again = resumed.exec(line)
    if (again) {
      const [, pid, name, rest] = again
      const begun = open.get(`${pid} ${name}`)
      if (!begun) continue
      open.delete(`${pid} ${name}`)
      const text = begun.text + rest
      calls.push({ ...begun, pid: Number(pid), name: name!, text, ok: succeeded(text), end: at })
      continue
    }
    const [, pid, name, , target = '', text = ''] = whole.exec(line) ?? []
    if (!pid || !name) continue
    if (text.endsWith('<unfinished ...>')) open.set(`${pid} ${name}`, { target, text, start: at })
    else {
      const call = { pid: Number(pid), name, target, text, ok: succeeded(text) }
      calls.push({ ...call, start: at, end: at })
    }
  }
  return calls.sort((a, b) => a.start - b.start)
}

const succeeded = (text: string): boolean => /\)\s+= \d/.test(text.slice(-200))
