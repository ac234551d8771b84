import { spawn, type ChildProcess } from 'node:child_process'
import type { Clock } from '../clock/clock.ts'
import type { Handler, Run } from '../redelivery/run.ts'

/**
 * A program that runs letters. Its arguments are not passed through a shell, and letters cannot
 * change them.
 */
export interface CommandTarget {
  /** The program and its arguments. */
  run: readonly string[]
  /**
   * Variables of the worker's environment that the program gets: true for all, or names. Default: a
   * few harmless ones.
   */
  inheritEnv?: boolean | readonly string[]
}

/** Variables that programs need and that contain no secrets. */
const harmless = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']
const maxStderrBytes = 4096
/** Values are cut at this length: Linux limits a variable to 128 KiB. */
const maxFactLength = 1000
/** Time between SIGTERM and SIGKILL. */
const killAfterMs = 2000
/** How long stderr is read after the exit: a child of the program may hold it open. */
const lingerMs = 500

/** Conventional exit codes, and the error codes that the classifier knows. */
const names: Readonly<Record<number, string>> = {
  64: 'ValidationError',
  65: 'ValidationError',
  75: 'TransientError',
  77: 'PermissionError',
}

/**
 * Runs letters with a program: the payload is its standard input, further data is in its
 * environment. Exit code 0 means resolved; otherwise the end of stderr is the error message. When
 * the run is aborted, the program and its children get SIGTERM, and SIGKILL two seconds later.
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
      // An own process group, so that the program and its children can be ended together.
      detached: true,
      windowsHide: true,
    })
    const stderr = tailOf(child)
    // A program need not read all of its input; only its exit code counts.
    child.stdin?.on('error', () => {})
    child.stdin?.end(run.letter.payload.bytes)
    const release = endOnAbort(child, run.signal, clock)
    try {
      const [code, signal] = await ended(child, program, clock)
      // Many programs exit with 0 on SIGTERM, whether or not their work was done.
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
  // Cut: a variable has a maximum length, and a letter must not prevent the program from starting.
  return Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      value.replaceAll('\0', '').slice(0, maxFactLength),
    ]),
  )
}

/** Collects the end of stderr. */
function tailOf(child: ChildProcess): () => string {
  let tail = Buffer.alloc(0)
  child.stderr?.on('data', (part: Buffer) => {
    tail = Buffer.concat([tail, part]).subarray(-maxStderrBytes)
  })
  child.stderr?.on('error', () => {})
  return () => {
    // The cut may be inside a character.
    const start = tail.findIndex((byte) => (byte & 0xc0) !== 0x80)
    return tail.subarray(Math.max(0, start)).toString('utf8').trim()
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

/**
 * Ends a program and its children when the signal aborts. Call the returned function when the
 * program has exited.
 */
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
    // The program has exited; its children may still run.
    if (signal.aborted) kill(child, 'SIGKILL')
  }
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // The group has exited already, or the platform has no process groups.
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
