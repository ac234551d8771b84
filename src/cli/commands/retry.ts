import type { Command } from 'commander'
import { addAct } from '../act.ts'
import type { Opened } from '../open.ts'
import { line } from '../print.ts'
import { liveWorkers } from '../workers.ts'

export function addRetry(program: Command): void {
  addAct(program, {
    name: 'retry',
    description: 'make letters due now; those that had come to rest get a fresh budget of retries',
    done: 'due now',
    run: (dlq, id, by) => dlq.retry(id, by),
    after: unworked,
  })
}

/** Due is not running: somebody has to be there to do it. */
async function unworked(
  { store, clock }: Opened,
  queues: ReadonlySet<string>,
): Promise<string | undefined> {
  const workers = await liveWorkers(store, clock.now())
  const handled = new Set(workers.flatMap((worker) => worker.queues))
  const idle = [...queues].filter((queue) => !handled.has(queue))
  if (idle.length === 0) return undefined
  const names = `${idle.slice(0, 3).map(line).join(', ')}${idle.length > 3 ? ', …' : ''}`
  return `No worker for ${names} runs now: they wait until one starts.`
}
