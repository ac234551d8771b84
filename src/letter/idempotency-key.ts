import type { Payload } from './letter.ts'

/**
 * The fields of a letter that its key derives from. A call that has not failed yet knows them as
 * well.
 */
export interface KeyedWork {
  id: string
  payload: Pick<Payload, 'version' | 'restOf'>
  replays: number
}

/**
 * The idempotency key: the same for the first call and every retry, until the payload is edited or
 * the letter is replayed. A partial result does not change it: a key per item (`key:item`) must
 * still match an earlier run that may have done the item.
 */
export function idempotencyKeyOf({ id, payload, replays }: KeyedWork): string {
  return `${id}:${payload.restOf ?? payload.version}:${replays}`
}
