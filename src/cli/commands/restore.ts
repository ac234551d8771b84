import type { Command } from 'commander'
import { addAct } from '../act.ts'

export function addRestore(program: Command): void {
  addAct(program, {
    name: 'restore',
    description: 'restore archived letters to their previous state; pending ones are due again',
    done: 'restored',
    run: (dlq, id, by) => dlq.restore(id, by),
  })
}
