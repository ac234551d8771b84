import type { Payload } from './letter.ts'

/** As much of a letter as its key derives from. A call that has not failed yet has no letter, but knows all of it. */
export interface KeyedWork {
  id: string
  payload: Pick<Payload, 'version' | 'restOf'>
  replays: number
}

/**
 * The key that tells a receiver that two runs are the same work: the same on the first call and on every retry, until
 * the payload is edited or the letter is replayed. A partial result does not change the key: what remains is part of the
 * same work, and a key per item (`key:item`) must still match the run that may have done the item.
 */
export function idempotencyKeyOf({ id, payload, replays }: KeyedWork): string {
  return `${id}:${payload.restOf ?? payload.version}:${replays}`
}
