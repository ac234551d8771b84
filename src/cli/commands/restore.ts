import type { Command } from 'commander'
import { addLetterAction } from '../letter-action.ts'
import { addConfigOptions } from './config.ts'
import { ruleOptions } from './replay.ts'

export function addRestore(program: Command): void {
  const command = addLetterAction(program, {
    name: 'restore',
    description: 'restore archived letters to their previous state; pending ones are due again',
    outcome: 'restored',
    run: (dlq, id, by) => dlq.restore(id, by),
    queueOptions: ruleOptions,
    bulk: () => ({ name: 'restore' }),
  })
  addConfigOptions(command)
}
