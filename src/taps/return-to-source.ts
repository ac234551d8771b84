import { isStringRecord } from '../backends/message-meta.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { checkKeys } from '../check/keys.ts'
import { replaysOfLetter } from '../letter/lineage.ts'
import type { Handler, ReplayingHandler, ReplayRoute } from '../redelivery/run.ts'
import type { ReturnedLetter, Tap } from './tap.ts'

export interface ReturnToSourceOptions {
  /**
   * How often one letter may return to its source, over all its lives. Default: 3, and for
   * `dlq.replay` the `maxReplays` of the queue.
   */
  maxReplays?: number
}

/**
 * Returns a handler that runs letters of a tap by sending them, as they are now, to their source. A
 * resolved letter is stored at the broker; any error is a failure, and the letter remains. With
 * this handler, `dlq.replay` also returns letters of the same queue.
 */
export function returnToSource(
  tap: Pick<Tap, 'returnToSource'>,
  options: ReturnToSourceOptions = {},
): ReplayingHandler {
  checkKeys('returnToSource options', options, ['maxReplays'], { code: 'INVALID_CONFIG' })
  const replay: ReplayRoute = async (letter, limits) => {
    const { maxReplays = limits.maxReplays } = options
    const home = toReturnedLetter(letter)
    const replays = replaysOfLetter(letter)
    if (replays >= maxReplays) return { kind: 'limit', replays, maxReplays }
    // The generation is the same for every run of this letter, so that a broker can detect
    // duplicates.
    await tap.returnToSource(home, replays + 1)
    return { kind: 'published', to: `the source of ${home.messageId}` }
  }
  const handler: Handler = async ({ letter, signal }) => {
    signal.throwIfAborted()
    const outcome = await replay(letter, { maxReplays: 3 })
    if (outcome.kind === 'published') return
    const { replays, maxReplays } = outcome
    throw new RedriveError(
      'INVALID_INPUT',
      `the letter returned to its source ${replays} times and died each time: find the cause, then raise maxReplays (${maxReplays}) to return it again`,
    )
  }
  return Object.assign(handler, { replay })
}

/** The letter in the form that its broker knows. */
function toReturnedLetter({
  id,
  source,
  payload,
  headers = {},
  metadata,
}: DeadLetter): ReturnedLetter {
  const { origin } = metadata
  if (source.kind !== 'mailbox' || !isStringRecord(origin))
    throw new RedriveError(
      'INVALID_INPUT',
      `letter ${id} has no source to return to (metadata.origin): it did not come from a tap, or an edit has removed its origin`,
    )
  const { messageId } = source
  const { bytes: body, version } = payload
  // An unedited body keeps its original content type, even if the body does not match it.
  if (version === 1) {
    const { contentType = payload.contentType } = origin
    return { body, contentType, headers, messageId, origin }
  }
  const { contentType } = payload
  const updated = Object.entries(headers).map(([name, text]) =>
    /^content-type$/i.test(name) ? [name, contentType] : [name, text],
  )
  return { body, contentType, headers: Object.fromEntries(updated), messageId, origin }
}
