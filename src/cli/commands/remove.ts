import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'

export function addRemove(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'remove',
    usage: 'remove --reason test',
    description: 'remove letters permanently',
    outcome: 'removed',
    run: (dlq, id, by) => dlq.remove(id, by),
    bulk: () => {
      const { reason } = command.opts<{ reason?: string }>()
      return { name: 'remove', options: reason === undefined ? {} : { reason } }
    },
  })
  command.option('--reason <text>', 'why; required with a filter')
}
