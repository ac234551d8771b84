import type { Command } from 'commander'
import { withQueue, type GlobalOptions } from '../open.ts'
import { formatCount, printEither } from '../print.ts'
import { userName } from '../user-name.ts'
import { terminal } from '../terminal.ts'

const examples = `
Examples:
  redrive erase user-17 --by mia --reason "request 4711"

Destroys the key of the subject and overwrites the content of its letters. The
letters stay, are marked as erased, and can be removed. Do not name the subject
in the reason: the reason is stored in the audit log.`

export function addErase(program: Command): void {
  program
    .command('erase <subject>')
    .description('erase the content of all letters about a person or another data subject')
    .option('--by <name>', 'your name')
    .requiredOption('--reason <text>', 'why, without the name of the subject')
    .addHelpText('after', examples)
    .action((subject: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & { by?: string; reason: string }>()
      const { by = userName(), reason } = options
      return withQueue(options, async ({ dlq }) => {
        const erasure = await dlq.eraseSubject(subject, { by, reason })
        const { letters, skipped } = erasure
        const rest = skipped > 0 ? `, ${skipped} skipped: run the command again` : ''
        printEither(options, erasure, `${formatCount(letters, 'letter')} erased${rest}.\n`)
        if (skipped > 0) terminal.exitCode = 1
      })
    })
}
