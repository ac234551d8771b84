// The results of `npm run deep`, which are a table in docs/quality.md.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../test/commands.ts'
import { parts, type Part } from './parts.ts'

export interface Result {
  readonly part: string
  readonly passed: boolean
  /** The last line that the part has printed. */
  readonly summary: string
  readonly duration: string
  /** Such as 2026-11-19. */
  readonly date: string
  readonly commit: string
  readonly machine: string
}

const page = join(root, 'docs', 'quality.md')
const begin = '<!-- results of npm run deep -->'
const end = '<!-- end of results -->'
const heading = ['part', 'result', 'what it printed last', 'duration', 'date', 'commit', 'machine']

const cellsOf = (row: string): string[] =>
  row
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim().replaceAll('`', ''))

/** The last result of each part that has run. */
function readResults(): Map<string, Result> {
  const text = readFileSync(page, 'utf8')
  const rows = text.slice(text.indexOf(begin), text.indexOf(end)).split('\n')
  const results = rows
    .filter((row) => row.startsWith('|'))
    .slice(2)
    .map(cellsOf)
    .map(
      ([part = '', result, summary = '', duration = '', date = '', commit = '', machine = '']) => ({
        part,
        passed: result === 'passed',
        summary,
        duration,
        date,
        commit,
        machine,
      }),
    )
  return new Map(results.map((result) => [result.part, result]))
}

export function writeResult(result: Result): void {
  const results = readResults().set(result.part, result)
  const clean = (text: string): string => text.replaceAll('|', '/').replaceAll('`', "'").trim()
  const rows = parts
    .flatMap(({ name }) => results.get(name) ?? [])
    .map(({ part, passed, summary, duration, date, commit, machine }) =>
      [
        `\`${part}\``,
        passed ? 'passed' : '**failed**',
        clean(summary).slice(0, 100),
        duration,
        date,
        `\`${commit}\``,
        machine,
      ].join(' | '),
    )
    .map((row) => `| ${row} |`)
  const table = [
    `| ${heading.join(' | ')} |`,
    `| ${heading.map(() => '---').join(' | ')} |`,
    ...rows,
  ]
  const text = readFileSync(page, 'utf8')
  writeFileSync(
    page,
    `${text.slice(0, text.indexOf(begin))}${begin}\n\n${table.join('\n')}\n\n${text.slice(text.indexOf(end))}`,
  )
}

/** The parts without a passed result that is newer than the files that they protect. */
export function staleParts(): { name: string; why: string }[] {
  const results = readResults()
  return parts.flatMap((part) => {
    const why = whyStale(part, results.get(part.name))
    return why === undefined ? [] : [{ name: part.name, why }]
  })
}

function whyStale({ protects }: Part, result: Result | undefined): string | undefined {
  if (!result) return 'has never run'
  if (!result.passed) return `failed on ${result.date}`
  try {
    const args = ['diff', '--quiet', result.commit, '--', ...protects]
    execFileSync('git', args, { cwd: root, stdio: 'ignore' })
    return undefined
  } catch (error) {
    return (error as { status?: number }).status === 1
      ? `last ran on ${result.date}, before a change of what it protects`
      : `last ran on ${result.date}, at a commit that is not in this clone`
  }
}
