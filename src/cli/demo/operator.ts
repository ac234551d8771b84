import { sleep, type Clock } from '../../clock/clock.ts'
import type { JsonPatch } from '../../letter/json-patch.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { indexQueue } from './services.ts'

const name = 'demo-operator'
const pauseMs = 5000
/** Above this number of parked letters of the other queues, one is reviewed. */
const maxParked = 8

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
    await dlq.noteGroup(group, name, 'The release of today reads a field that old orders lack.')
    await dlq.assignGroup(group, name, 'search-team')
    const reason = 'The next release fixes it.'
    await dlq.plan('retry', { queue: indexQueue, state: 'parked' }, { by: name, reason })
    done = true
  }
}

/** An invoice without lines can never be rendered. It gets its line, and is retried. */
async function repair(dlq: DeadLetterQueue): Promise<void> {
  const { items } = await dlq.find({ queue: 'render-invoice', state: 'exhausted', limit: 1 })
  const letter = items[0]
  if (!letter) return
  const patch: JsonPatch = [
    { op: 'replace', path: '/lines', value: [{ sku: 'sku-100', count: 1 }] },
  ]
  await dlq.note(letter.id, 'The old client sends no lines: taken from the order.', name)
  await dlq.edit(letter.id, { patch, reason: 'lines of the order', by: name })
  await dlq.retry(letter.id, name)
}

/** While too many letters are parked: approves refunds, and discards the rest. */
async function review(dlq: DeadLetterQueue): Promise<void> {
  const { items } = await dlq.find({
    queue: ['refund', 'sync-customer'],
    state: 'parked',
    order: 'settled',
    limit: maxParked + 1,
  })
  const oldest = items[0]
  if (!oldest || items.length <= maxParked) return
  const approved = oldest.queue === 'refund'
  await dlq.review(oldest.id, {
    decision: approved ? 'requeue' : 'discard',
    note: approved ? 'approved' : 'cannot work',
    by: name,
  })
}

/** Archives the oldest letter that succeeded. */
async function archive(dlq: DeadLetterQueue): Promise<void> {
  const { items } = await dlq.find({ state: 'resolved', order: 'settled', limit: 1 })
  if (items[0]) await dlq.archive(items[0].id, name)
}
