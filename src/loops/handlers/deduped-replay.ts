import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import type { Records } from '../../store.ts'
import { describeValue, hasMethod, wrongOption } from '../check-options.ts'
import type { DeadMessage } from '../dead-message.ts'
import type { DeadLetterHandler } from './handler.ts'
import { teller } from '../events.ts'
import { checkReplayOptions, handlerOf, type ReplayOptions } from './replay.ts'

/** Remembers what was replayed. It should outlive the process. */
export interface SeenSet {
  has(key: string): Promise<boolean>
  add(key: string): Promise<void>
}

/** Remembers in the records of a store. */
export function recordedSeen(records: Pick<Records, 'get' | 'put'>, kind = 'replayed'): SeenSet {
  if (!hasMethod(records, 'get') || !hasMethod(records, 'put'))
    throw wrongOption('recordedSeen', 'records', 'the records of a store: store.records', records)
  return {
    has: async (key) => (await records.get(kind, key)) !== undefined,
    add: async (key) => void (await records.put(kind, key, true)),
  }
}

/**
 * Replays one dead message of each request, and discards others of it. A request is marked after its message was sent: one that could not be sent is
 * not lost, and a crash in between may send it twice. Messages without a request id are never taken for each other. One that
 * failed again after its replay counts anew.
 */
export function dedupedReplay(options: ReplayOptions & { seen: SeenSet }): DeadLetterHandler {
  checkReplayOptions('dedupedReplay', options, ['seen'])
  const { seen } = options
  if (!hasMethod(seen, 'has') || !hasMethod(seen, 'add'))
    throw wrongOption('dedupedReplay', 'seen', 'a SeenSet: recordedSeen(store.records)', seen)
  const handler = handlerOf(options)
  const tell = teller(options)
  return async (dead, context) => {
    const key = keyOf(dead)
    if (key === undefined) return handler(dead, context)
    const known: unknown = await seen.has(key)
    // A message is discarded only for a plain yes: any object would count as one.
    if (typeof known !== 'boolean')
      throw new RedriveError(
        'INVALID_INPUT',
        `seen.has returned ${describeValue(known)}: it must return true or false`,
      )
    if (known) return { action: 'discarded' }
    const handled = await handler(dead, context)
    if (handled?.action === 'replayed')
      try {
        await seen.add(key)
      } catch (error) {
        tell({ type: 'error', during: `marking a replay to ${dead.sourceMailbox}`, error })
      }
    return handled
  }
}

function keyOf({ sourceMailbox, requestId, replays }: DeadMessage): string | undefined {
  if (requestId === undefined) return undefined
  const life = JSON.stringify([sourceMailbox, requestId, replays])
  return createHash('sha256').update(life).digest('hex')
}
