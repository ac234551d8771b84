import type { Command } from 'commander'
import { addAct } from '../act.ts'

export function addRestore(program: Command): void {
  addAct(program, {
    name: 'restore',
    description: 'bring archived letters back to where they were; those that waited are due again',
    done: 'restored',
    run: (dlq, id, by) => dlq.restore(id, by),
  })
}
