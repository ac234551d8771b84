import type { Command } from 'commander'
import type { SavedView, SavedViewInput } from '../../api/schemas/saved-view.ts'
import { addFilterOptions, readFilter, type FilterOptions } from '../filter.ts'
import { withStore, type GlobalOptions } from '../open.ts'
import { escapeLine, printEither, printRows, type Column } from '../print.ts'
import { findServer } from '../remote/server.ts'
import { userName } from '../user-name.ts'
import { systemClock } from '../../clock/clock.ts'

interface SaveOptions extends GlobalOptions, FilterOptions {
  shared?: boolean
}

/** The saved views of a store or a server. */
interface ViewAccess {
  list(): Promise<SavedView[]>
  create(input: SavedViewInput): Promise<SavedView>
  remove(id: string): Promise<SavedView>
}

const examples = `
Examples:
  redrive views list
  redrive views save "needs a person" --state parked --shared
  redrive views remove 0199e3f2-7b1e-7e2a-9a55-0d6f2b1c8e44

A saved view is a filter with a name. The dashboard shows it.`

const columns: Column<SavedView>[] = [
  { title: 'ID', cell: ({ id }) => escapeLine(id) },
  { title: 'NAME', cell: ({ name }) => escapeLine(name), minWidth: 8 },
  { title: 'OWNER', cell: ({ owner }) => escapeLine(owner), minWidth: 5, optional: true },
  { title: 'SHARED', cell: ({ shared }) => (shared ? 'yes' : 'no'), optional: true },
  { title: 'FILTER', cell: ({ filter }) => escapeLine(JSON.stringify(filter)), minWidth: 16 },
]

export function addViews(program: Command): void {
  const views = program
    .command('views')
    .description('list, save and remove saved filters')
    .addHelpText('after', examples)
  views
    .command('list')
    .description('list your saved views, and those that others share')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withViews(options, async (access) => {
        printRows(options, await access.list(), columns, 'No saved views.')
      })
    })
  addFilterOptions(views.command('save').argument('<name>', 'name of the view'))
    .description('save a filter under a name')
    .option('--shared', 'others see the view, too')
    .action((name: string, _, self: Command) => {
      const options = self.optsWithGlobals<SaveOptions>()
      const filter = readFilter(options, systemClock.now())
      return withViews(options, async (access) => {
        const view = await access.create({ name, filter, shared: options.shared ?? false })
        printEither(options, view, `${view.id}  ${escapeLine(name)} is saved.\n`)
      })
    })
  views
    .command('remove')
    .argument('<id>', 'id of the view')
    .description('remove a saved view')
    .action((id: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withViews(options, async (access) => {
        const view = await access.remove(id)
        printEither(options, view, `${escapeLine(view.name)} is removed.\n`)
      })
    })
}

async function withViews(
  options: GlobalOptions,
  use: (views: ViewAccess) => Promise<void>,
): Promise<void> {
  const server = await findServer(options)
  if (server) {
    const { client } = server
    return use({
      list: () => client.listViews(),
      create: (input) => client.createView(input),
      remove: (id) => client.removeView({ id }),
    })
  }
  const [{ Views }, { callerOf }] = await Promise.all([
    import('../../server/views.ts'),
    import('../../server/tokens.ts'),
  ])
  // Whoever reaches the store may see everything in it.
  const caller = {
    ...callerOf({ name: userName(), role: 'admin' }),
    redaction: () => undefined,
    redactions: () => [],
  }
  return withStore('views', options, ({ store, clock }) => {
    const views = new Views(store, clock)
    return use({
      list: () => views.list(caller),
      create: (input) => views.create(input, caller),
      remove: async (id) => views.remove(await views.findChangeable(id, caller), caller, undefined),
    })
  })
}
