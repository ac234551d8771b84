import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { checkKeys } from '../check/keys.ts'
import { replaysOfLetter } from '../letter/lineage.ts'
import type { Handler, ReplayingHandler, ReplayRoute } from '../redelivery/run.ts'
import type { SentBack, Tap } from './tap.ts'

export interface SendBackOptions {
  /** How often one letter may be sent back, over all its lives. Default: 3, and for `dlq.replay` the `maxReplays` of the queue. */
  maxReplays?: number
}

/**
 * Runs letters that a tap brought in by sending them back to where they came from, as they are now: resolved means that the broker has it.
 * Whatever hinders that is a failure, and the letter stays. With it, `dlq.replay` sends letters of the same queue back as well.
 */
export function sendBack(
  tap: Pick<Tap, 'sendBack'>,
  options: SendBackOptions = {},
): ReplayingHandler {
  checkKeys('sendBack options', options, ['maxReplays'], { code: 'INVALID_CONFIG' })
  const replay: ReplayRoute = async (letter, limits) => {
    const { maxReplays = limits.maxReplays } = options
    const home = homeOf(letter)
    const replays = replaysOfLetter(letter)
    if (replays >= maxReplays) return { kind: 'limit', replays, maxReplays }
    // The same for every run of this letter, so that a broker that knows ids takes a repeat for what it is.
    await tap.sendBack(home, replays + 1)
    return { kind: 'published', to: `the source of ${home.messageId}` }
  }
  const handler: Handler = async ({ letter, signal }) => {
    signal.throwIfAborted()
    const outcome = await replay(letter, { maxReplays: 3 })
    if (outcome.kind === 'published') return
    const { replays, maxReplays } = outcome
    throw new RedriveError(
      'INVALID_INPUT',
      `it was sent back ${replays} times, and died each time: find out why, and raise maxReplays (${maxReplays}) to send it again`,
    )
  }
  return Object.assign(handler, { replay })
}

/** The letter as its broker knows it. */
function homeOf({ id, source, payload, headers = {}, metadata }: DeadLetter): SentBack {
  const { origin } = metadata
  if (source.kind !== 'mailbox' || !isTexts(origin))
    throw new RedriveError(
      'INVALID_INPUT',
      `letter ${id} does not say where it was before it died (metadata.origin): no tap brought it in, or somebody edited that away`,
    )
  const { messageId } = source
  const { bytes: body, version } = payload
  // As captured it goes as it came, also when it is not what it was said to be.
  if (version === 1) {
    const { contentType = payload.contentType } = origin
    return { body, contentType, headers, messageId, origin }
  }
  const { contentType } = payload
  const told = Object.entries(headers).map(([name, text]) =>
    /^content-type$/i.test(name) ? [name, contentType] : [name, text],
  )
  return { body, contentType, headers: Object.fromEntries(told), messageId, origin }
}

function isTexts(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((text) => typeof text === 'string')
}
