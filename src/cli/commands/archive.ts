import type { Command } from 'commander'
import { addAct } from '../act.ts'

export function addArchive(program: Command): void {
  addAct(program, {
    name: 'archive',
    description: 'archive letters; they stay complete and can be restored',
    done: 'archived',
    run: (dlq, id, by) => dlq.archive(id, by),
  })
}
