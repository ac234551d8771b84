// The only way in which tests start processes. The functions take the arguments of their namesakes
// in node:child_process. A process ends with the process that started it, however that ends, and
// test/leaks.ts ends it with its test file.
import child, {
  type ChildProcess,
  type ExecFileSyncOptionsWithStringEncoding,
  type ExecFileOptions,
  type ForkOptions,
  type SpawnOptions,
  type SpawnSyncOptionsWithStringEncoding,
} from 'node:child_process'
import { promisify } from 'node:util'
import { findProgram } from '../scripts/servers/machine.ts'

export type { ChildProcess }

/** On Linux, the system kills a process whose parent has ended, also if the parent was killed. */
const setpriv = process.platform === 'linux' ? findProgram('setpriv') : undefined
const tie: readonly string[] = setpriv ? [setpriv, '--pdeathsig', 'KILL', '--'] : []

/** The command line of a process that ends with this one. */
function tied(file: string, args: readonly string[]): [file: string, args: string[]] {
  const [first, ...rest] = [...tie, file, ...args]
  return [first!, rest]
}

/** Elsewhere, this process ends its children when it exits. */
const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const one of children) one.kill('SIGKILL')
})

function track<T extends ChildProcess>(born: T): T {
  children.add(born)
  born.once('exit', () => children.delete(born))
  return born
}

export const spawn = ((file: string, args: readonly string[], options: SpawnOptions = {}) =>
  track(child.spawn(...tied(file, args), options))) as typeof child.spawn

export function fork(
  module: string,
  args: readonly string[],
  options: ForkOptions = {},
): ChildProcess {
  const execArgv = options.execArgv ?? process.execArgv
  const [execPath, before] = tied(process.execPath, execArgv)
  return track(child.fork(module, args, { ...options, execPath, execArgv: before }))
}

/** What a program has printed. Rejects if it exits with an error. */
export function run(
  file: string,
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<{ stdout: string; stderr: string }> {
  const running = promisify(child.execFile)(...tied(file, args), { ...options, encoding: 'utf8' })
  track(running.child)
  return running
}

/** What a program has printed on its standard output. Throws if it exits with an error. */
export function runSync(
  file: string,
  args: readonly string[],
  options: Omit<ExecFileSyncOptionsWithStringEncoding, 'encoding'> = {},
): string {
  return child.execFileSync(...tied(file, args), { ...options, encoding: 'utf8' })
}

/** The result of a program, also if it exits with an error. */
export function trySync(
  file: string,
  args: readonly string[],
  options: Omit<SpawnSyncOptionsWithStringEncoding, 'encoding'> = {},
): child.SpawnSyncReturns<string> {
  return child.spawnSync(...tied(file, args), { ...options, encoding: 'utf8' })
}
