import type { Command } from 'commander'
import { resolveId } from '../letter-ids.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import { printEither } from '../print.ts'
import { userName } from '../user-name.ts'

export function addNote(program: Command): void {
  program
    .command('note')
    .argument('<id>', 'id, id prefix or source id of a letter')
    .argument('<text>', 'the note')
    .description('add a note to the history of a letter')
    .option('--by <name>', 'your name')
    .action((given: string, text: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & { by?: string }>()
      return withQueue(options, async ({ dlq, letters }) => {
        const letter = await dlq.note(
          await resolveId(letters, given),
          text,
          options.by ?? userName(),
        )
        printEither(options, { id: letter.id, ok: true }, `${letter.id}  noted\n`)
      })
    })
}
