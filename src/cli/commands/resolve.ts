import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'

export function addResolve(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'resolve',
    usage: 'resolve --reason "done by hand"',
    description: 'settle letters as done, without running them',
    outcome: 'resolved',
    run: (dlq, id, by) => dlq.resolve(id, by),
    bulk: () => {
      const { reason } = command.opts<{ reason?: string }>()
      return { name: 'resolve', options: reason === undefined ? {} : { reason } }
    },
  })
  command.option('--reason <text>', 'why; required with a filter')
}
