import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'

export function addRestore(program: Command): void {
  addLetterAction(program, {
    name: 'restore',
    description: 'restore archived letters to their previous state; pending ones are due again',
    outcome: 'restored',
    run: (dlq, id, by) => dlq.restore(id, by),
    bulk: () => ({ name: 'restore' }),
  })
}
