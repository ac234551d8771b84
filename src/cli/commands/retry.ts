import type { Command } from 'commander'
import { addAct } from '../act.ts'
import { unworked } from '../workers.ts'

export function addRetry(program: Command): void {
  addAct(program, {
    name: 'retry',
    description: 'make letters due now; those that had come to rest get a fresh budget of retries',
    done: 'due now',
    run: (dlq, id, by) => dlq.retry(id, by),
    after: unworked,
  })
}
