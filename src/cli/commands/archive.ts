import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'

export function addArchive(program: Command): void {
  addLetterAction(program, {
    name: 'archive',
    description: 'archive letters; they stay complete and can be restored',
    outcome: 'archived',
    run: (dlq, id, by) => dlq.archive(id, by),
    bulk: () => ({ name: 'archive' }),
  })
}
