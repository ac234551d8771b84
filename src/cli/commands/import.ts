import { readFileSync } from 'node:fs'
import { text as readAll } from 'node:stream/consumers'
import type { Command } from 'commander'
import { RedriveError } from '../../errors.ts'
import type { ImportReport } from '../../transfer/operation-file/import.ts'
import { withStore, type GlobalOptions } from '../open.ts'
import { formatCount, toJson, escapeLine } from '../print.ts'

const examples = `
Examples:
  redrive import .duyetbot-dlq.json
  redrive import - < operations.json       from standard input

The file is a JSON array of operations, as redrive export writes it. Importing
it again adds nothing. Invalid items are reported with their index in the file,
and the exit code is 2.
With --json it prints {"added", "duplicates", "problems"}.`

export function addImport(program: Command): void {
  program
    .command('import')
    .description(
      'import the operations of a JSON file as letters; creates the store if it does not exist',
    )
    .argument('<file>', 'the file, or - for standard input')
    .addHelpText('after', examples)
    .action(async (file: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      const text = file === '-' ? await readAll(process.stdin) : readFile(file)
      const [{ importOperations }, { readOperationFile }] = await Promise.all([
        import('../../transfer/operation-file/import.ts'),
        import('../../transfer/operation-file/read.ts'),
      ])
      const operations = readOperationFile(text)
      const { letters, problems } = operations
      // No store is created for a file without operations.
      if (letters.length === 0) return printReport({ added: 0, duplicates: 0, problems }, options)
      return withStore(
        options,
        async ({ store }) => printReport(await importOperations(store, operations), options),
        { create: true },
      )
    })
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new RedriveError('INVALID_INPUT', `cannot read ${file}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

const maxPrinted = 20

function printReport(report: ImportReport, options: GlobalOptions): void {
  const { added, duplicates, problems } = report
  if (options.json) process.stdout.write(`${toJson(report)}\n`)
  else {
    const existing = duplicates > 0 ? `, ${duplicates.toLocaleString('en')} already exist` : ''
    process.stdout.write(`${formatCount(added, 'letter')} added${existing}.\n`)
    for (const problem of problems.slice(0, maxPrinted))
      process.stderr.write(`${escapeLine(problem)}\n`)
    if (problems.length > maxPrinted)
      process.stderr.write(`… ${problems.length} problems in total\n`)
  }
  if (problems.length > 0) process.exitCode = 2
}
