import { spawn, type ChildProcess } from 'node:child_process'
import type { Clock } from '../clock/clock.ts'
import type { Handler, Run } from '../redelivery/run.ts'

/** A program that runs letters. No shell reads its words, and no letter can change them. */
export interface CommandTarget {
  /** The program and its arguments. */
  run: readonly string[]
  /** Whether it gets the whole environment of the worker, or which of it. A few harmless variables, unless said. */
  inheritEnv?: boolean | readonly string[]
}

/** What a program needs to find its way, and what tells it nothing. */
const harmless = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']
const maxStderrBytes = 4096
/** Linux takes 128 KiB in a variable, and what says more than this says nothing. */
const maxFactLength = 1000
/** Between being asked to end and being ended. */
const killAfterMs = 2000
/** What a program has left running may hold its stderr open; so long it is listened to. */
const lingerMs = 500

/** What exit codes mean where programs agree on one, by names that the classifier knows. */
const names: Readonly<Record<number, string>> = {
  64: 'ValidationError',
  65: 'ValidationError',
  75: 'TransientError',
  77: 'PermissionError',
}

/**
 * Runs letters with a program: the payload on its standard input, what else there is to know in its environment. Exit code 0
 * means resolved; otherwise the end of what it wrote to stderr says why. When the run is aborted, the program and all that
 * it started are asked to end, and ended two seconds later.
 */
export function commandHandler(
  target: CommandTarget,
  clock: Clock,
  env: NodeJS.ProcessEnv = process.env,
): Handler {
  const [program = '', ...words] = target.run
  const inherited = inheritedEnv(target.inheritEnv ?? false, env)
  return async (run) => {
    run.signal.throwIfAborted()
    const child: ChildProcess = spawn(program, words, {
      env: { ...inherited, ...factsOf(run) },
      stdio: ['pipe', 'ignore', 'pipe'],
      // A group of its own, so that all of it can be ended together.
      detached: true,
      windowsHide: true,
    })
    const stderr = tailOf(child)
    // A program that does not read to the end has its reasons; how it exits is what counts.
    child.stdin?.on('error', () => {})
    child.stdin?.end(run.letter.payload.bytes)
    const release = endOnAbort(child, run.signal, clock)
    try {
      const [code, signal] = await ended(child, program, clock)
      // Many programs answer SIGTERM with an exit code of 0, whether or not their work was done.
      run.signal.throwIfAborted()
      if (code !== 0) throw failureOf(program, code, signal, stderr())
    } finally {
      release()
    }
  }
}

function inheritedEnv(
  inherit: boolean | readonly string[],
  env: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  if (inherit === true) return env
  const wanted = new Set([...harmless, ...(inherit === false ? [] : inherit)])
  return Object.fromEntries(Object.entries(env).filter(([name]) => wanted.has(name)))
}

function factsOf({ letter, attempt, idempotencyKey }: Run): Record<string, string> {
  const facts = {
    REDRIVE_LETTER_ID: letter.id,
    REDRIVE_QUEUE: letter.queue,
    REDRIVE_ATTEMPT: String(attempt),
    REDRIVE_IDEMPOTENCY_KEY: idempotencyKey,
    REDRIVE_CONTENT_TYPE: letter.payload.contentType,
  }
  // No variable can hold all of it, and a letter must not be able to keep a program from starting.
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      value.replaceAll('\0', '').slice(0, maxFactLength),
    ]),
  )
}

/** Keeps the last of what a program writes to stderr. */
function tailOf(child: ChildProcess): () => string {
  let kept = Buffer.alloc(0)
  child.stderr?.on('data', (part: Buffer) => {
    kept = Buffer.concat([kept, part]).subarray(-maxStderrBytes)
  })
  child.stderr?.on('error', () => {})
  return () => {
    // The cut may have gone through a character.
    const start = kept.findIndex((byte) => (byte & 0xc0) !== 0x80)
    return kept.subarray(Math.max(0, start)).toString('utf8').trim()
  }
}

type End = [code: number | null, signal: NodeJS.Signals | null]

function ended(child: ChildProcess, program: string, clock: Clock): Promise<End> {
  return new Promise((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) reject(notStarted(error, program))
    })
    child.once('exit', (code, signal) => {
      const done = (): void => {
        cancel()
        child.stderr?.destroy()
        resolve([code, signal])
      }
      const cancel = clock.timer(lingerMs, done)
      child.once('close', done)
    })
  })
}

function notStarted(error: NodeJS.ErrnoException, program: string): Error {
  const text =
    error.code === 'ENOENT'
      ? `command not found: ${program}`
      : `${program} cannot be started: ${error.code ?? error.message}`
  return Object.assign(new Error(text), error.code === undefined ? {} : { code: error.code })
}

/** Ends a program and all that it started once the signal aborts. Answers with a function to be called when it has ended. */
function endOnAbort(child: ChildProcess, signal: AbortSignal, clock: Clock): () => void {
  let cancel: () => void = () => {}
  const abort = (): void => {
    kill(child, 'SIGTERM')
    cancel = clock.timer(killAfterMs, () => kill(child, 'SIGKILL'))
  }
  signal.addEventListener('abort', abort, { once: true })
  return () => {
    signal.removeEventListener('abort', abort)
    cancel()
    // The program has ended; what it started may have not.
    if (signal.aborted) kill(child, 'SIGKILL')
  }
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended already, or this system has no groups.
    child.kill(signal)
  }
}

function failureOf(
  program: string,
  code: number | null,
  signal: NodeJS.Signals | null,
  stderr: string,
): Error {
  const how = code === null ? `was ended by ${signal}` : `exited with ${code}`
  const error = new Error(stderr === '' ? `${program} ${how}` : `${stderr} (${program} ${how})`)
  error.name = names[code ?? -1] ?? 'CommandError'
  return error
}
