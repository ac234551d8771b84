import { RedriveError } from '../../errors.ts'
import { states } from '../../letter/letter.ts'
import type { Store } from '../../store.ts'
import { hideSecrets } from '../open.ts'
import { escapeLine } from '../print.ts'

/** The store of the demo. Never the one of REDRIVE_STORE, which may be in production. */
export const demoStore = 'sqlite:.redrive/demo.db'

/**
 * Rejects another store that has letters of other queues: the demo would park them, because it has
 * no handler for them.
 */
export async function checkDemoStore(
  store: Store,
  demoQueues: readonly string[],
  url: string,
): Promise<void> {
  if (url === demoStore) return
  const counts = await store.tally('queue', { state: [...states] })
  const foreign = [...counts.keys()].find((queue) => !demoQueues.includes(queue))
  if (foreign === undefined) return
  throw new RedriveError(
    'INVALID_INPUT',
    `${hideSecrets(url)} contains letters of queue ${escapeLine(foreign)}, which is not a queue of the demo: use another store with --store`,
  )
}
