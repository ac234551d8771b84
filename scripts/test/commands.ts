// Runs the commands of a test run, which end with it.
import { spawn, type ChildProcess } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { findProgram } from '../servers/machine.ts'

export const root: string = dirname(dirname(import.meta.dirname))
const bin = join(root, 'node_modules', '.bin')

const running = new Set<ChildProcess>()
let interrupted = false

/** Whether somebody has ended this run early. */
export const isInterrupted = (): boolean => interrupted

// An interrupt from a terminal also reaches the running command, a signal from a program does not.
// This process goes on: it stops the servers.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    interrupted = true
    for (const child of running) child.kill(signal)
  })

// On Linux, a command also ends if this process is killed.
const setpriv = process.platform === 'linux' ? findProgram('setpriv') : undefined
const tie = setpriv ? [setpriv, '--pdeathsig', 'KILL', '--'] : []

export interface CommandOptions {
  readonly environment?: NodeJS.ProcessEnv
  /** An open file for what the command prints. Default: the output of this process. */
  readonly output?: number
}

/** Runs a program of the packages, or of the machine. True if it exits with 0. */
export function command(
  name: string,
  args: readonly string[],
  { environment, output }: CommandOptions = {},
): Promise<boolean> {
  return new Promise((resolve) => {
    if (interrupted) return resolve(false)
    const [file, ...rest] = [...tie, findProgram(name, [bin]) ?? name, ...args]
    const env = {
      ...process.env,
      PATH: [bin, process.env['PATH']].join(delimiter),
      ...environment,
    }
    const out = output ?? 'inherit'
    const child = spawn(file!, rest, { cwd: root, stdio: ['ignore', out, out], env })
    running.add(child)
    child.once('error', (error) => {
      console.error(error.message)
      resolve(false)
    })
    child.once('exit', (code) => {
      running.delete(child)
      resolve(code === 0)
    })
  })
}
