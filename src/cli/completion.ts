import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { filterActionNames } from '../letter/bulk-action.ts'
import { categories, priorities, states } from '../letter/letter.ts'
import { orders } from '../letter/query.ts'
import { withLetters, type GlobalOptions } from './open.ts'
import { terminal } from './terminal.ts'

type Complete = (value: string, description: string) => void

/** Options whose values are known. */
const choices: { [option: string]: readonly string[] } = {
  state: states,
  category: categories,
  priority: priorities,
  order: orders,
}

/** Commands whose first argument is the name of a queue. */
const queueCommands = ['queue pause', 'queue resume', 'capture']

/**
 * The script for bash gets the words of the line from a function of the package bash-completion,
 * which many machines lack.
 */
const wordsForBash = `# The words of the line, where the package bash-completion is missing
if ! declare -F _get_comp_words_by_ref > /dev/null; then
    _get_comp_words_by_ref() {
        local line="\${COMP_LINE:0:COMP_POINT}"
        read -ra words <<< "$line"
        if [[ "$line" == *[[:space:]] ]]; then words+=(""); fi
        cword=$((\${#words[@]} - 1))
        cur="\${words[cword]}"
        prev="\${words[cword - 1]}"
    }
fi

`

/**
 * Adds `completion SHELL`, which prints a script for a shell, and the hidden command `complete`,
 * which that script calls for each press of the tab key.
 */
export async function addCompletion(program: Command, args: readonly string[]): Promise<void> {
  const queues = needsQueues(args) ? await readQueues(args) : []
  const endpoints = args.includes('api') ? await readEndpoints() : []
  const root = tab(program, { completionCommandName: 'completion' })
  const handlerOf = (values: readonly string[]) => (complete: Complete) =>
    values.forEach((value) => complete(value, ''))
  for (const command of [root, ...root.commands.values()])
    for (const [name, option] of command.options) {
      const values = name === 'queue' ? queues : choices[name]
      if (values && !option.isBoolean) option.handler = handlerOf(values)
    }
  const setArgument = (command: string, name: string, values: readonly string[]): void => {
    const argument = root.commands.get(command)?.arguments.get(name)
    if (argument) argument.handler = handlerOf(values)
  }
  for (const command of queueCommands) setArgument(command, 'queue', queues)
  setArgument('bulk plan', 'action', filterActionNames)
  setArgument('api', 'endpoint', endpoints)
  program.hook('preAction', (_, action) => {
    if (action.name() === 'completion' && action.args[0] === 'bash')
      terminal.stdout.write(wordsForBash)
  })
}

/** Whether the last word of the command line may be the name of a queue. */
function needsQueues(args: readonly string[]): boolean {
  const line = args.join(' ')
  return (
    ['-q', '--queue'].includes(args.at(-2) ?? '') ||
    queueCommands.some((command) => line.includes(` ${command} `))
  )
}

async function readEndpoints(): Promise<string[]> {
  const { endpoints } = await import('../api/endpoints.ts')
  return Object.keys(endpoints)
}

/** The queues of the store or server of the command line. None if they cannot be read. */
async function readQueues(args: readonly string[]): Promise<string[]> {
  const valueOf = (option: string): string | undefined => args[args.indexOf(option, 1) + 1]
  const options: GlobalOptions = {
    ...(args.includes('--store') ? { store: valueOf('--store')! } : {}),
    ...(args.includes('--server') ? { server: valueOf('--server')! } : {}),
  }
  try {
    const counts = await withLetters(options, ({ letters }) => letters.countQueues())
    return counts.map(({ queue }) => queue)
  } catch {
    return []
  }
}
