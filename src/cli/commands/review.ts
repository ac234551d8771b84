import { Option, type Command } from 'commander'
import type { ReviewInput } from '../../admin/admin.ts'
import { addAct } from '../act.ts'
import { unworked } from '../workers.ts'

const decisions: ReviewInput['decision'][] = ['requeue', 'resolve', 'discard']

export function addReview(program: Command): void {
  const command: Command = addAct(program, {
    name: 'review',
    usage: 'review --decision requeue',
    description: 'decide on letters that wait for a review; discarded ones are archived',
    done: 'reviewed',
    run: (dlq, id, by) => dlq.review(id, { ...decided(), by }),
    after: async (opened, queues) =>
      decided().decision === 'requeue' ? unworked(opened, queues) : undefined,
  })
  const decided = (): Omit<ReviewInput, 'by'> => {
    const { decision, note } = command.opts<Omit<ReviewInput, 'by'>>()
    return note === undefined ? { decision } : { decision, note }
  }
  command
    .addOption(
      new Option('--decision <decision>', 'what happens to the letters')
        .choices(decisions)
        .makeOptionMandatory(),
    )
    .option('--note <text>', 'the reason, for the history')
}
