// Runs Java programs with the jars of a client.
import { spawn } from '../processes.ts'
import { once } from 'node:events'
import { delimiter } from 'node:path'
import { createInterface } from 'node:readline'
import { findProgram, run } from '../../scripts/servers/machine.ts'
import { classPathOf, type Client } from './clients.ts'

/** A running Java program. Each printed line of JSON is one answer; all other lines are its log. */
export interface JavaProgram extends AsyncDisposable {
  /** The next answer. Rejects with the log when the program ends without one. */
  next<T>(): Promise<T>
  /**
   * All further answers, once the program has ended. Rejects with the log when it ended with an
   * error.
   */
  rest<T>(): Promise<T[]>
  /** Stops the program and resolves when it has exited. May be called twice. */
  [Symbol.asyncDispose](): Promise<void>
}

const stopMs = 20_000

/** Compiles a source file into a folder, for classes that a program loads by name. */
export function compile(client: Client, source: string, folder: string): void {
  run(findProgram('javac')!, ['-cp', classPathOf(client), '-d', folder, source])
}

/**
 * Starts a program: a class of the jars, or the path of a source file, which Java compiles itself.
 * The class with `main` is the first in that file. `classes` is a folder with further compiled
 * classes.
 */
export function java(
  client: Client,
  main: string,
  args: readonly string[] = [],
  { classes }: { classes?: string } = {},
): JavaProgram {
  const path = [classPathOf(client), ...(classes === undefined ? [] : [classes])]
  const child = spawn(
    findProgram('java')!,
    [
      '-Xmx256m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
      '-cp',
      path.join(delimiter),
      main,
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const answers: unknown[] = []
  const log: string[] = []
  const arrived = new EventTarget()
  let ended = false
  const take = (line: string): void => {
    const answer = jsonIn(line)
    if (answer === undefined) log.push(line)
    else answers.push(answer.value)
    arrived.dispatchEvent(new Event('change'))
  }
  createInterface({ input: child.stdout }).on('line', take)
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  const end = new Promise<number | null>((resolve) => {
    child.once('error', (error) => log.push(error.message))
    child.once('close', (code) => {
      ended = true
      arrived.dispatchEvent(new Event('change'))
      resolve(code)
    })
  })
  const failed = (what: string): Error =>
    new Error(`${main} ${what}:\n${log.slice(-40).join('\n')}`)
  return {
    next: async <T>() => {
      while (answers.length === 0) {
        if (ended) throw failed('ended without an answer')
        await once(arrived, 'change')
      }
      return answers.shift() as T
    },
    rest: async <T>() => {
      const code = await end
      if (code !== 0) throw failed(`ended with ${code}`)
      return answers.splice(0) as T[]
    },
    [Symbol.asyncDispose]: async () => {
      // Gives the program time to leave its consumer groups.
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), stopMs)
      await end
      clearTimeout(timer)
    },
  }
}

function jsonIn(line: string): { value: unknown } | undefined {
  if (!/^[[{"]/.test(line)) return undefined
  try {
    return { value: JSON.parse(line) as unknown }
  } catch {
    return undefined
  }
}
