import type { Command } from 'commander'
import type { LineageLetter } from '../../admin/lineage.ts'
import { stateStyle } from '../letter-format.ts'
import { resolveId } from '../letter-ids.ts'
import { withQueue, type GlobalOptions } from '../open.ts'
import { escapeLine, formatTimestamp, printRows, type Column } from '../print.ts'

const examples = `
Examples:
  redrive lineage 01995c3a

Lists the letters of one message, the oldest first. Each but the first is a
replay that failed again.`

const columns: Column<LineageLetter>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'STATE', cell: ({ state }) => state, style: ({ state }) => stateStyle[state] },
  {
    title: 'CAPTURED',
    cell: ({ deadLetteredAt }) => formatTimestamp(deadLetteredAt),
    optional: true,
  },
  { title: 'ERROR', cell: ({ failure }) => escapeLine(failure), minWidth: 16 },
]

export function addLineage(program: Command): void {
  program
    .command('lineage')
    .argument('<id>', 'id, id prefix or source id of a letter')
    .description('list the letters of one message and its replays')
    .addHelpText('after', examples)
    .action((given: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, letters }) => {
        const found = await dlq.lineage(await resolveId(letters, given))
        printRows(options, found, columns, 'No letters.')
      })
    })
}
