// Follows a page of the documentation as a reader does, in a folder of its own: saves each program
// under the name in its first line, runs each command, and compares what is printed with the page.
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawn, type ChildProcess } from '../processes.ts'

interface Step {
  language: string
  code: string
  line: number
}

export interface Place {
  /** Where the reader begins. */
  folder: string
  env: NodeJS.ProcessEnv
  /** What the reader has in place of what the page says, such as a tarball of the package. */
  replace: readonly (readonly [from: string, to: string])[]
  /** Ends commands that hang. */
  signal: AbortSignal
}

const root = join(import.meta.dirname, '../..')

/** The programs, commands and outputs of a page, in order. */
function stepsOf(page: string): Step[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```(ts|sh|text)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1]!,
    code: match[2]!,
    line: text.slice(0, match.index).split('\n').length + 1,
  }))
}

/** A command that has been started, with what it has printed so far. */
interface Command {
  child: ChildProcess
  /** Resolves when the output passes the check, or when the command has ended. */
  prints(check: (output: string) => boolean): Promise<string>
  ended: Promise<number | NodeJS.Signals>
  errors(): string
}

function startCommand(code: string, cwd: string, env: NodeJS.ProcessEnv): Command {
  // Its own group, so that a signal reaches all of it, as Ctrl-C does.
  const child = spawn('bash', ['-e', '-c', code], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [output, errors] = ['', '']
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = once(child, 'close').then(
    ([code, signal]) => (code ?? signal) as number | NodeJS.Signals,
  )
  return {
    child,
    ended,
    errors: () => errors,
    async prints(check) {
      const isClosed = ended.then(() => true)
      let closed = false
      while (!closed && !check(output))
        closed = await Promise.race([isClosed, once(child.stdout, 'data').then(() => false)])
      return output
    },
  }
}

/** Ids, times and the width of columns differ from run to run. */
const ids = /\b[0-9a-f]{8}(-[0-9a-f]+)*\b/g
const times = /\bin \d+ (s|min)\b|\b\d+ (s|min) ago\b|\bnow\b/g

function normalise(output: string): string {
  return output
    .replaceAll(ids, 'ID')
    .replaceAll(times, 'TIME')
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/^ | $/gm, '')
    .trim()
}

/** Whether an output is the one that the page shows. A line with only … stands for any lines. */
function isShown(output: string, shown: string): boolean {
  const text = normalise(output)
  const [first = '', ...rest] = normalise(shown).split(/^…$/m)
  if (rest.length === 0) return text === first
  if (!text.startsWith(first)) return false
  let end = first.length
  for (const part of rest) {
    const start = text.indexOf(part, end)
    if (start < 0) return false
    end = start + part.length
  }
  return text.endsWith(rest.at(-1)!)
}

/** Follows the page to its end. Throws at the first step that does not do what the page says. */
export async function followPage(page: string, place: Place): Promise<void> {
  const running = new Set<Command>()
  const stop = (signal: NodeJS.Signals): void => {
    for (const { child } of running)
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, signal)
  }
  place.signal.addEventListener('abort', () => stop('SIGKILL'))
  /** The ids of the page, and those that were printed instead. */
  const real = new Map<string, string>()
  let { folder } = place
  let last: Command | undefined
  const localize = (code: string): string =>
    place.replace
      .reduce((text, [from, to]) => text.replaceAll(from, to), code)
      .replaceAll(ids, (id) => real.get(id) ?? id)
  const steps: { [language: string]: (code: string) => Promise<void> } = {
    ts: async (code) => {
      const [, name] = /^\/\/ (\S+)\n/.exec(code) ?? []
      if (name === undefined) throw new Error('the program has no name in its first line')
      writeFileSync(join(folder, name), localize(code))
    },
    sh: async (code) => {
      last = startCommand(localize(code), folder, place.env)
      running.add(last)
      if (code.includes('# until Ctrl-C')) return
      const exit = await last.ended
      running.delete(last)
      if (exit !== 0) throw new Error(`the command exits with ${exit}: ${last.errors()}`)
      const [, entered] = /\bcd (\S+)/.exec(code) ?? []
      if (entered !== undefined) folder = join(folder, entered)
    },
    text: async (shown) => {
      const output = await last!.prints((text) => isShown(text, shown))
      if (!isShown(output, shown))
        throw new Error(`printed:\n${output}${last!.errors()}\ninstead of:\n${shown}`)
      const printed = output.match(ids) ?? []
      for (const [index, id] of (shown.match(ids) ?? []).entries()) real.set(id, printed[index]!)
    },
  }
  let exits: (number | NodeJS.Signals)[] = []
  try {
    for (const { language, code, line } of stepsOf(page))
      await steps[language]!(code).catch((error: unknown) => {
        throw new Error(`${page}:${line}: ${(error as Error).message}`, { cause: error })
      })
  } finally {
    stop('SIGINT')
    exits = await Promise.all([...running].map(({ ended }) => ended))
  }
  const failed = exits.filter((exit) => exit !== 0 && exit !== 'SIGINT')
  if (failed.length > 0) throw new Error(`${page}: Ctrl-C ends a command with ${failed.join()}`)
}
