import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'

export function addPark(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'park',
    description: 'set letters aside for a review',
    outcome: 'parked',
    run: (dlq, id, by) => dlq.park(id, readReason(), by),
    bulk: () => {
      const reason = readReason()
      return { name: 'park', options: reason === undefined ? {} : { reason } }
    },
  })
  command.option('--reason <text>', 'why, for the history')
  const readReason = (): string | undefined => command.opts<{ reason?: string }>().reason
}
