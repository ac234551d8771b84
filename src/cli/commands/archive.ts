import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'
import { addConfigOptions } from './config.ts'
import { ruleOptions } from './replay.ts'

export function addArchive(program: Command): void {
  const command = addLetterAction(program, {
    name: 'archive',
    description: 'archive letters; they stay complete and can be restored',
    outcome: 'archived',
    run: (dlq, id, by) => dlq.archive(id, by),
    queueOptions: ruleOptions,
    bulk: () => ({ name: 'archive' }),
  })
  addConfigOptions(command)
}
