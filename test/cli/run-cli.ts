import { EventEmitter, once } from 'node:events'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { runCommand } from '../../src/cli/run-command.ts'
import { terminal, useTerminal, type Terminal } from '../../src/cli/terminal.ts'
import { systemClock } from '../../src/clock/clock.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aFolder as createFolder } from '../folders.ts'
import { spawn } from '../processes.ts'

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
  /** Sends the command a signal. */
  kill: (signal: NodeJS.Signals) => void
  ended: Promise<Ran>
}

/** What a command has written. */
class Output extends Writable {
  text = ''

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString()
    done()
    this.emit('text')
  }

  /** Waits for a text in the output, and returns the part that matches. */
  async waitFor(pattern: RegExp): Promise<string> {
    for (;;) {
      const [found] = pattern.exec(this.text) ?? []
      if (found !== undefined) return found
      await once(this, 'text')
    }
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
  const ended = runCommand().finally(() => {
    useTerminal(before)
    process.chdir(folder)
    isRunning = false
  })
  return {
    stdout,
    stderr,
    kill: (signal) => void events.emit(signal, signal),
    ended: ended.then(() => ({
      out: stdout.text,
      err: stderr.text,
      exit: Number(fake.exitCode ?? 0),
    })),
  }
}

/** Runs the CLI as its own process. */
export async function redriveProcess(
  args: readonly string[],
  { env = {}, cwd, input = '' }: Omit<RunOptions, 'node'> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...plainEnv, ...env },
    ...(cwd ? { cwd } : {}),
  })
  child.stdin.end(input)
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), exited])
  return { out, err, exit }
}

/** A folder that is removed after the tests of the file. */
export function aFolder(): string {
  return createFolder('redrive-cli')
}

/** Creates a store file with these letters and returns its URL. */
export async function aStoreFile(folder: string, letters: readonly DeadLetter[]): Promise<string> {
  const path = join(folder, `${systemClock.id()}.db`)
  const store = sqliteStore({ path })
  await store.open()
  await store.add(letters)
  await store.close()
  return `sqlite:${path}`
}

/** Control and hidden characters, except line breaks. */
const controlCharacters = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/** Checks that the output has no control characters. */
export function expectEscaped(output: string): void {
  expect(controlCharacters.exec(output)).toBeNull()
}

/** Also checks that the output fits 80 columns. */
export function expectToFit(output: string): void {
  expectEscaped(output)
  for (const line of output.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
}

/** A string with control characters for a terminal. */
export const hostileText =
  '\u001b]0;pwned\u0007\u001b[2J\u001b[31mred\r\nnext\u0000 \u009b1m\u202eltr \u2028 \ufeff'
