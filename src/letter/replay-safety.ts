import type { DeadLetter, LetterSummary } from './letter.ts'

/**
 * Whether the work of a queue may be done twice: `safe`, `idempotent-key` (if the receiver can
 * detect it by a key), or `never`.
 */
export const replaySafeties = ['safe', 'idempotent-key', 'never'] as const
export type ReplaySafety = (typeof replaySafeties)[number]

/**
 * Why a letter must not run again before its group is fixed. Undefined: it is fixed, or its queue
 * does not require it.
 */
export type FixCheck = (
  letter: Pick<LetterSummary, 'queue' | 'fingerprint'>,
) => Promise<string | undefined>

const keyHeader = 'idempotency-key'

/** Why the queue of a letter does not allow its replay. Undefined: it does. */
export function whyReplayRefused(
  letter: Pick<LetterSummary, 'source' | 'headers' | 'dedupeKey'>,
  safety: ReplaySafety,
): string | undefined {
  if (safety === 'never') return 'its queue allows no replay (option replay: never)'
  if (safety === 'idempotent-key' && replayKeyOf(letter) === undefined)
    return `it has no ${keyHeader} header, which its queue requires (option replay: idempotent-key)`
  return undefined
}

/**
 * The key by which a receiver can detect that it has done the work: the header of the message, or
 * the dedupeKey that the caller chose. The dedupeKey of a message is not one: each replay has its
 * own.
 */
function replayKeyOf({
  source,
  headers = {},
  dedupeKey,
}: Pick<LetterSummary, 'source' | 'headers' | 'dedupeKey'>): string | undefined {
  const given = Object.entries(headers).find(([name]) => name.toLowerCase() === keyHeader)?.[1]
  if (given !== undefined && given !== '') return given
  return source.kind === 'operation' || source.kind === 'workflow' ? dedupeKey : undefined
}

/** The letter as it is published: with its key as a header, if its queue requires one. */
export function withReplayKey(letter: DeadLetter, safety: ReplaySafety): DeadLetter {
  const key = safety === 'idempotent-key' ? replayKeyOf(letter) : undefined
  if (key === undefined) return letter
  const others = Object.entries(letter.headers ?? {}).filter(
    ([name]) => name.toLowerCase() !== keyHeader,
  )
  return { ...letter, headers: { ...Object.fromEntries(others), [keyHeader]: key } }
}
