import type { Command } from 'commander'
import { addFilterOptions, readFilter, readLimit, type FilterOptions } from '../filter.ts'
import { withQueue, type ConfigOptions } from '../open.ts'
import { printRows } from '../print.ts'
import { addConfigOptions } from './config.ts'
import { letterColumns } from './list.ts'
import { searchOptions } from './replay.ts'

interface SearchCommandOptions extends ConfigOptions, FilterOptions {
  payload?: boolean
  limit: string
}

const examples = `
Examples:
  redrive search "card declined" --queue charge-card
  redrive search order-4711 --payload

Needs a store with full-text search: OpenSearch, or the setting search. On
other stores, redrive list --text finds a part of an error.`

export function addSearch(program: Command): void {
  const command = program
    .command('search')
    .argument('<words>', 'letters that have all these words')
    .description('search letters by words, best match first')
  addConfigOptions(addFilterOptions(command))
    .option('--payload', 'search payloads as well')
    .option('-n, --limit <count>', 'maximum number of letters', '20')
    .addHelpText('after', examples)
    .action((words: string, _, self: Command) => {
      const options = self.optsWithGlobals<SearchCommandOptions>()
      return withQueue(
        options,
        async ({ dlq, clock }) => {
          const found = await dlq.search(words, {
            among: readFilter(options, clock.now()),
            limit: readLimit(options.limit),
            ...(options.payload ? { payload: true } : {}),
          })
          const columns = letterColumns((id) => id, clock.now())
          printRows(options, found, columns, 'No letter matches.')
        },
        () => searchOptions(options),
      )
    })
}
