// Runs commands of the CLI in this process.
import { EventEmitter, once } from 'node:events'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { runCommand } from '../../src/cli/run-command.ts'
import { terminal, useTerminal, type Terminal } from '../../src/cli/terminal.ts'

/** The program, for tests that start a process. */
export const main = join(import.meta.dirname, '../../src/cli/main.ts')

export interface Ran {
  out: string
  err: string
  exit: number | null
}

export interface RunOptions {
  env?: NodeJS.ProcessEnv
  cwd?: string
  input?: string
  /** The version of Node that the command finds. */
  node?: string
}

const { FORCE_COLOR: _force, COLUMNS: _columns, REDRIVE_STORE: _store, ...inherited } = process.env

/** The environment without terminal settings. */
export const plainEnv: NodeJS.ProcessEnv = { ...inherited, NO_COLOR: '1' }

/** A command that runs in this process. */
export interface Started {
  stdout: Output
  stderr: Output
  ended: Promise<Ran>
  /** Sends the command a signal, unless it has ended, and waits for its end. */
  stop: (signal: NodeJS.Signals) => Promise<Ran>
}

/** What a command has written. */
class Output extends Writable {
  text = ''

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString()
    done()
    this.emit('text')
  }

  /** Waits for output that matches. Returns the first group, or else all of the match. */
  async waitFor(pattern: RegExp): Promise<string> {
    for (;;) {
      const [found, group] = pattern.exec(this.text) ?? []
      if (found !== undefined) return group ?? found
      if (this.writableEnded) throw new Error(`the command has ended: ${this.text}`)
      await once(this, 'text')
    }
  }

  override _final(done: () => void): void {
    done()
    this.emit('text')
  }
}

/** Ends when the last command has ended: commands share the working directory and the terminal. */
let idle: Promise<unknown> = Promise.resolve()
let isRunning = false

/**
 * Runs the CLI in this process, after the commands before it. See `redriveProcess` for a process of
 * its own.
 */
export function redrive(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const ended = idle.then(() => startRedrive(args, options).ended)
  idle = ended.catch(() => {})
  return ended
}

/** Starts the CLI in this process. Until it has ended, no other command can run. */
export function startRedrive(
  args: readonly string[],
  { env = {}, cwd, input = '', node = process.versions.node }: RunOptions = {},
): Started {
  if (isRunning) throw new Error('a command still runs in this process')
  isRunning = true
  const [stdout, stderr] = [new Output(), new Output()]
  const events = new EventEmitter()
  const fake = Object.assign(events, {
    argv: [process.execPath, main, ...args],
    env: { ...plainEnv, ...env },
    exitCode: undefined,
    pid: process.pid,
    versions: { ...process.versions, node },
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
    stdout,
    stderr,
    exit: () => {
      throw new Error('this command ends its process: test it with redriveProcess')
    },
  }) as unknown as Terminal
  const [before, folder] = [terminal, process.cwd()]
  if (cwd !== undefined) process.chdir(cwd)
  useTerminal(fake)
  let hasEnded = false
  const ended = runCommand().finally(() => {
    useTerminal(before)
    process.chdir(folder)
    isRunning = false
    hasEnded = true
    stdout.end()
    stderr.end()
  })
  const result = ended.then(() => ({
    out: stdout.text,
    err: stderr.text,
    exit: Number(fake.exitCode ?? 0),
  }))
  return {
    stdout,
    stderr,
    ended: result,
    stop: (signal) => {
      if (!hasEnded) events.emit(signal, signal)
      return result
    },
  }
}
