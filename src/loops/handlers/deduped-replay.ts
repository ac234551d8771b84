import { createHash } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import { hasMethods } from '../../letter/reading.ts'
import type { Records } from '../../store.ts'
import { describeValue, wrongOption } from '../check-options.ts'
import type { DeadMessage } from '../dead-message.ts'
import type { DeadLetterHandler } from './handler.ts'
import { createEmit } from '../events.ts'
import { checkReplayOptions, toHandler, type ReplayOptions } from './replay.ts'

/** Stores the keys of replayed messages. It should outlive the process. */
export interface SeenSet {
  has(key: string): Promise<boolean>
  add(key: string): Promise<void>
}

/** Stores the keys in the records of a store. */
export function recordedSeen(records: Pick<Records, 'get' | 'put'>, kind = 'replayed'): SeenSet {
  if (!hasMethods(records, 'get', 'put'))
    throw wrongOption('recordedSeen', 'records', 'the records of a store: store.records', records)
  return {
    has: async (key) => (await records.get(kind, key)) !== undefined,
    add: async (key) => void (await records.put(kind, key, true)),
  }
}

/**
 * Replays one dead message of each request, and discards the others. A request is marked after its
 * message was sent: a message that could not be sent is not lost, and a crash in between may send
 * it twice. Messages without a request id are never deduplicated. A message that failed again after
 * its replay counts as new.
 */
export function dedupedReplay(options: ReplayOptions & { seen: SeenSet }): DeadLetterHandler {
  checkReplayOptions('dedupedReplay', options, ['seen'])
  const { seen } = options
  if (!hasMethods(seen, 'has', 'add'))
    throw wrongOption('dedupedReplay', 'seen', 'a SeenSet: recordedSeen(store.records)', seen)
  const handler = toHandler(options)
  const emit = createEmit(options)
  return async (dead, context) => {
    const key = keyOf(dead)
    if (key === undefined) return handler(dead, context)
    const known: unknown = await seen.has(key)
    // Only `true` discards a message: any object would be truthy.
    if (typeof known !== 'boolean')
      throw new RedriveError(
        'INVALID_INPUT',
        `seen.has must return true or false, but returned ${describeValue(known)}`,
      )
    if (known) return { action: 'discarded' }
    const handled = await handler(dead, context)
    if (handled?.action === 'replayed')
      try {
        await seen.add(key)
      } catch (error) {
        emit({ type: 'error', during: `marking a replay to ${dead.sourceMailbox}`, error })
      }
    return handled
  }
}

function keyOf({ sourceMailbox, requestId, replays }: DeadMessage): string | undefined {
  if (requestId === undefined) return undefined
  const life = JSON.stringify([sourceMailbox, requestId, replays])
  return createHash('sha256').update(life).digest('hex')
}
