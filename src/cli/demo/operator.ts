import { sleep, type Clock } from '../../clock/clock.ts'
import type { JsonPatch } from '../../letter/json-patch.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { LetterFilter } from '../../letter/query.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { indexQueue } from './services.ts'

const name = 'demo-operator'
const pauseMs = 5000
/** Letters that stay as they are, so that there is something to look at. */
const minParked = 8
const minExhausted = 8
const minBroken = 2

/**
 * Simulates a person who takes care of letters, one thing at a time: describes the group of the
 * broken release and plans to retry it, repairs payloads, decides about parked letters, and
 * archives what is done. The plan stays a plan: running it is left to whoever watches the demo.
 */
export async function runOperator(
  dlq: DeadLetterQueue,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const tasks = [describeRelease(dlq), () => repair(dlq), () => review(dlq), () => archive(dlq)]
  for (;;) {
    await sleep(clock, pauseMs, signal)
    if (signal.aborted) return
    for (const task of tasks) {
      // The letter changed meanwhile, or the store is unavailable: the next round tries again.
      await task().catch(() => {})
    }
  }
}

/** Once: a note and an assignee for the group of the broken release, and a plan to retry it. */
function describeRelease(dlq: DeadLetterQueue): () => Promise<void> {
  let done = false
  return async () => {
    if (done) return
    const { items } = await dlq.find({ queue: indexQueue, state: 'parked', limit: 1 })
    const group = items[0]?.fingerprint
    if (group === undefined) return
    // Only once, also if a later step fails: each further try would add another note and plan.
    done = true
    if ((await dlq.group(group))?.assignee !== undefined) return
    await dlq.noteGroup(group, name, 'The release of today reads a field that old orders lack.')
    await dlq.assignGroup(group, name, 'search-team')
    const reason = 'The next release fixes it.'
    await dlq.plan('retry', { queue: indexQueue, state: 'parked' }, { by: name, reason })
  }
}

/** An invoice without lines can never be rendered. It gets its line, and is retried. */
async function repair(dlq: DeadLetterQueue): Promise<void> {
  const letter = await findOldest(dlq, { queue: 'render-invoice', state: 'parked' }, minBroken)
  if (!letter) return
  const patch: JsonPatch = [
    { op: 'replace', path: '/lines', value: [{ sku: 'sku-100', count: 1 }] },
  ]
  await dlq.note(letter.id, 'The old client sends no lines: taken from the order.', name)
  await dlq.edit(letter.id, { patch, reason: 'lines of the order', by: name })
  await dlq.retry(letter.id, name)
}

/** Approves refunds, and discards customers that cannot be synchronized. */
async function review(dlq: DeadLetterQueue): Promise<void> {
  const filter: LetterFilter = { queue: ['refund', 'sync-customer'], state: 'parked' }
  const letter = await findOldest(dlq, filter, minParked)
  if (!letter) return
  const approved = letter.queue === 'refund'
  await dlq.review(letter.id, {
    decision: approved ? 'requeue' : 'discard',
    note: approved ? 'approved' : 'cannot work',
    by: name,
  })
}

/** Archives what succeeded, and what nobody can help. */
async function archive(dlq: DeadLetterQueue): Promise<void> {
  const resolved = await findOldest(dlq, { state: 'resolved' }, 0)
  if (resolved) await dlq.archive(resolved.id, name)
  const lost = await findOldest(dlq, { state: 'exhausted' }, minExhausted)
  if (lost) await dlq.archive(lost.id, name)
}

/** The oldest of the letters that match, if there are more than `keep`. */
async function findOldest(
  dlq: DeadLetterQueue,
  filter: LetterFilter,
  keep: number,
): Promise<Pick<DeadLetter, 'id' | 'queue'> | undefined> {
  const { items } = await dlq.find({ ...filter, order: 'settled', limit: keep + 1 })
  return items.length > keep ? items[0] : undefined
}
