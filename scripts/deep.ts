// npm run deep [-- part…]
//
// Runs what takes too long for `npm test`, prints one line per part, and writes the results to
// docs/quality.md. What a part prints is in a log. `--list` prints the parts.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { parts, type Part } from './deep/parts.ts'
import { writeResult } from './deep/results.ts'
import { servers } from './servers/table.ts'
import { startForTests, stopAfterTests } from './servers/lifecycle.ts'
import { testsInDepth } from './test/affected.ts'
import { command, root } from './test/commands.ts'
import { formatDuration } from './test/phases.ts'

const logs = join(root, 'node_modules', '.cache', 'redrive-deep')

/** The commands of a part. Of test files, only those run that do more in full. */
function commandsOf({ run }: Part): readonly (readonly string[])[] {
  if ('commands' in run) return run.commands
  const files = testsInDepth(root).filter((file) =>
    run.files.some((folder) => file.startsWith(folder)),
  )
  return files.length === 0 ? [] : [['vitest', 'run', '--silent=passed-only', ...files]]
}

/** The last lines that say something. */
function lastLine(log: string): string {
  const lines = stripVTControlCharacters(readFileSync(log, 'utf8'))
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const tests = lines.findLast((line) => line.startsWith('Tests '))
  return (tests ?? lines.at(-1) ?? '').replaceAll(/\s+/g, ' ')
}

const commit = (): string => {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  return git('rev-parse', '--short=8', 'HEAD')
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: 'boolean' } },
})
const width = Math.max(...parts.map(({ name }) => name.length))
const unknown = positionals.find((name) => !parts.some((part) => part.name === name))
if (values.list) {
  for (const { name, shows } of parts) console.log(`${name.padEnd(width)}  ${shows}`)
} else if (unknown !== undefined) {
  console.error(
    `unknown part ${unknown}; the parts are ${parts.map(({ name }) => name).join(', ')}`,
  )
  process.exitCode = 2
} else await runParts(parts.filter(({ name }) => !positionals.length || positionals.includes(name)))

async function runParts(chosen: readonly Part[]): Promise<void> {
  mkdirSync(logs, { recursive: true })
  const machine = `${process.arch}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`
  await startForTests(servers.filter((one) => !process.env[one.variable]).map(({ name }) => name))
  for (const part of chosen) {
    const log = join(logs, `${part.name}-${Date.now()}.log`)
    const startMs = performance.now()
    let passed = true
    const output = openSync(log, 'w')
    for (const [name, ...args] of commandsOf(part)) {
      writeSync(output, `$ ${[name, ...args].join(' ')}\n`)
      const isGreen = await command(name!, args, {
        output,
        environment: { REDRIVE_TEST_DEEP: '1' },
      })
      passed = passed && isGreen
    }
    closeSync(output)
    const duration = formatDuration(performance.now() - startMs)
    const summary = lastLine(log)
    const date = new Date().toISOString().slice(0, 10)
    writeResult({ part: part.name, passed, summary, duration, date, commit: commit(), machine })
    await command('oxfmt', ['docs/quality.md'])
    if (!passed) process.exitCode = 1
    const status = passed ? 'passed' : `FAILED, see ${log}`
    console.log(`${part.name.padEnd(width)}  ${duration.padStart(12)}  ${status}  ${summary}`)
  }
  await stopAfterTests()
}
