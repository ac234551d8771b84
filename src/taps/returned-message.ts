import { createHash } from 'node:crypto'
import { RedriveError } from '../errors.ts'
import { lineage, originalIdOf } from '../letter/lineage.ts'
import type { SentBack } from './tap.ts'

/** What a letter that is sent back says about its past, so that it is known when it dies again. */
export function lineageOf(
  { headers, messageId }: SentBack,
  generation: number,
): Record<string, string> {
  return {
    [lineage.replays]: String(generation),
    [lineage.originalId]: originalIdOf(headers, messageId),
  }
}

/** The id by which a broker knows a repeat. The body is part of it: one that was edited since is no repeat. */
export function onceIdOf({ messageId, body }: SentBack, generation: number): string {
  return createHash('sha256')
    .update(JSON.stringify([messageId, generation]))
    .update(body)
    .digest('hex')
    .slice(0, 40)
}

/** Sends, and says where to when that fails. */
export async function sent<T>(where: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if (!(error instanceof RedriveError)) throw error
    const text = `it could not be sent back to ${where}: ${error.message}`
    throw new RedriveError(error.code, text, { cause: error })
  }
}
