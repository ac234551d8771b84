// Generates the reference pages from the tables in the source. `--check` only reports stale pages.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { configJsonSchema } from '../src/config/json-schema.ts'
import { configPage } from '../src/config/reference.ts'
import { errorTable } from '../src/errors.ts'
import { states } from '../src/letter/letter.ts'
import { moveTable } from '../src/letter/move-table.ts'

const pages: Record<string, () => string> = {
  'docs/reference/errors.md': () =>
    [
      '# Errors',
      '',
      'Every error that Redrive throws is a `RedriveError` with one of these codes. The HTTP status is what the admin',
      'API answers with; the exit code is what the command line ends with. *Retry helps* says whether doing the very',
      'same again can succeed.',
      '',
      '| code | HTTP | exit | retry helps | what it means and what to do |',
      '|---|---|---|---|---|',
      ...Object.entries(errorTable).map(
        ([code, { status, exit, retry, means }]) =>
          `| \`${code}\` | ${status} | ${exit} | ${retry ? 'yes' : 'no'} | ${means} |`,
      ),
    ].join('\n'),
  'docs/reference/moves.md': () =>
    [
      '# Moves',
      '',
      'A letter changes only by one of these moves. What is not in the table is refused with `ILLEGAL_MOVE`.',
      '',
      `| move | ${states.join(' | ')} | ends in |`,
      `|---|${states.map(() => '---|').join('')}---|`,
      ...Object.entries(moveTable).map(([move, { from, to }]) => {
        const cells = states.map((state) =>
          (from as readonly string[]).includes(state) ? 'yes' : '',
        )
        return `| \`${move}\` | ${cells.join(' | ')} | ${to.length > 0 ? to.join(', ') : 'nothing: it is gone'} |`
      }),
      '',
      'A claim from `retrying` is possible only when the lease has expired. `edit` leaves the state as it is, and',
      '`restore` leads back to where the letter was archived from.',
    ].join('\n'),
  'docs/reference/config.md': configPage,
  'docs/reference/config.schema.json': () => JSON.stringify(configJsonSchema(), null, 2),
}

const root = join(import.meta.dirname, '..')
const stale = Object.entries(pages).filter(([path, make]) => {
  const text = `${make()}\n`
  let current = ''
  try {
    current = readFileSync(join(root, path), 'utf8')
  } catch {
    // A missing page is stale.
  }
  if (current === text) return false
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return true
})
for (const [path] of stale)
  console.log(process.argv.includes('--check') ? `stale: ${path} (npm run docs)` : `wrote ${path}`)
if (process.argv.includes('--check') && stale.length > 0) process.exitCode = 1
