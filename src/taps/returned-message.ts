import { createHash } from 'node:crypto'
import { RedriveError } from '../errors.ts'
import { lineage, originalIdOf } from '../letter/lineage.ts'
import type { ReturnedLetter } from './tap.ts'

/** Headers that identify a returned letter if it dies again. */
export function lineageOf(
  { headers, messageId }: ReturnedLetter,
  generation: number,
): Record<string, string> {
  return {
    [lineage.replays]: String(generation),
    [lineage.originalId]: originalIdOf(headers, messageId),
  }
}

/**
 * The id by which a broker detects duplicates. It depends on the body, so that an edited letter is
 * not a duplicate.
 */
export function onceIdOf({ messageId, body }: ReturnedLetter, generation: number): string {
  return createHash('sha256')
    .update(JSON.stringify([messageId, generation]))
    .update(body)
    .digest('hex')
    .slice(0, 40)
}

/** Calls `send` and adds the destination to its error. */
export async function sendTo<T>(where: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if (!(error instanceof RedriveError)) throw error
    const text = `could not return the letter to ${where}: ${error.message}`
    throw new RedriveError(error.code, text, { cause: error })
  }
}
