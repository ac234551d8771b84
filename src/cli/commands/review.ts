import { Option, type Command } from 'commander'
import type { ReviewInput } from '../../admin/action-input.ts'
import { addLetterAction } from '../letter-action.ts'
import { describeMissingWorkers } from '../missing-workers.ts'

const decisions: ReviewInput['decision'][] = ['requeue', 'resolve', 'discard']

export function addReview(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'review',
    usage: 'review --decision requeue',
    description: 'decide on letters that wait for a review; discarded ones are archived',
    outcome: 'reviewed',
    run: (dlq, id, by) => dlq.review(id, { ...readDecision(), by }),
    finalNote: async (opened, queues) =>
      readDecision().decision === 'requeue' ? describeMissingWorkers(opened, queues) : undefined,
  })
  const readDecision = (): Omit<ReviewInput, 'by'> => {
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
