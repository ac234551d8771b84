import type { Command } from 'commander'
import type { RetryOptions } from '../../admin/action-input.ts'
import { systemClock } from '../../clock/clock.ts'
import type { State } from '../../letter/letter.ts'
import { addLetterAction } from '../letter-action.ts'
import { readFutureTime } from '../filter.ts'
import { describeMissingWorkers } from '../missing-workers.ts'
import { addConfigOptions } from './config.ts'
import { ruleOptions } from './replay.ts'
import { terminal } from '../terminal.ts'

/** The outcome of a run. */
const outcomesOfRun: Partial<Record<State, string>> = {
  pending: 'failed and waits for its next retry',
}

export function addRetry(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'retry',
    description: 'retry letters now; settled letters get their retry count reset',
    outcome: ({ state }) => {
      const { at, wait } = retryOptions()
      if (!wait) return at === undefined ? 'due now' : `due at ${String(at)}`
      return outcomesOfRun[state] ?? state
    },
    queueOptions: ruleOptions,
    run: async (dlq, id, by) => {
      const options = retryOptions()
      const letter = await dlq.retry(id, by, options)
      if (options.wait && letter.state !== 'resolved') terminal.exitCode = 1
      return letter
    },
    bulk: () => {
      const { at, wait } = retryOptions()
      const due = at === undefined ? {} : { at }
      if (wait) return { name: 'retry', options: due, until: 'finished' }
      // Without a worker, letters are made due all the same.
      return { name: 'retry', options: { ...due, concurrency: 1_000_000 } }
    },
    finalNote: async (opened, queues) =>
      retryOptions().wait ? undefined : describeMissingWorkers(opened, queues),
  })
  addConfigOptions(command)
    .option('--at <when>', 'retry later: in 30s, 15m, 2h, 3d, or at an ISO timestamp')
    .option(
      '--wait',
      'wait until each letter has run, and print the result; exits with 1 unless all are resolved',
    )
  const startedMs = systemClock.now()
  const retryOptions = (): RetryOptions => {
    const { at, wait } = command.opts<{ at?: string; wait?: boolean }>()
    return {
      ...(at === undefined ? {} : { at: readFutureTime('--at', at, startedMs) }),
      ...(wait ? { wait } : {}),
    }
  }
}
