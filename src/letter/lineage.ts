import type { DeadLetter } from './letter.ts'

/** Headers of a replayed message with its original id and number of replays. */
export const lineage = {
  replays: 'redrive-replays',
  firstFailedAt: 'redrive-first-failed-at',
  originalId: 'redrive-original-id',
} as const

type Headers = Readonly<Record<string, string>>

/**
 * How often a message was replayed, by its header. The header is untrusted: an invalid value counts
 * as absent.
 */
export function replaysOf(headers: Headers): number {
  const value = headers[lineage.replays] ?? ''
  return /^\d{1,6}$/.test(value) ? Number(value) : 0
}

/** The id of a message before its first replay. Default: `id`. */
export function originalIdOf(headers: Headers, id: string): string {
  return headers[lineage.originalId]?.slice(0, 200) || id
}

/**
 * How often a letter was replayed in total. Letters of older versions have the count in their
 * metadata.
 */
export function replaysOfLetter({
  replays,
  metadata,
}: Pick<DeadLetter, 'replays' | 'metadata'>): number {
  const older = metadata['replays']
  return Math.max(replays, typeof older === 'number' && Number.isSafeInteger(older) ? older : 0)
}

/**
 * The id of the message that a letter comes from, before its first replay. A letter that was not a
 * message is published under its own id.
 */
export function originalIdOfLetter({
  id,
  source,
  headers = {},
  metadata,
}: Pick<DeadLetter, 'id' | 'source' | 'headers' | 'metadata'>): string {
  if (source.kind !== 'mailbox') return id
  const given = metadata['originalId']
  return typeof given === 'string' ? given : originalIdOf(headers, source.messageId)
}
