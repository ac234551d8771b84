import type { DeadLetter } from './letter.ts'

/** The headers by which a message that was sent to its source again tells of its past. */
export const lineage = {
  replays: 'redrive-replays',
  firstFailedAt: 'redrive-first-failed-at',
  originalId: 'redrive-original-id',
} as const

type Headers = Readonly<Record<string, string>>

/** How often a message was sent to its source again, by what it says itself. The header comes from outside: what makes no sense counts as absent. */
export function replaysOf(headers: Headers): number {
  const said = headers[lineage.replays] ?? ''
  return /^\d{1,6}$/.test(said) ? Number(said) : 0
}

/** The id that a message had in its first life. `id` when this is the first. */
export function originalIdOf(headers: Headers, id: string): string {
  return headers[lineage.originalId]?.slice(0, 200) || id
}

/** How often a letter was published to its source, over all its lives. Letters of older versions have the count in their metadata. */
export function replaysOfLetter({
  replays,
  metadata,
}: Pick<DeadLetter, 'replays' | 'metadata'>): number {
  const said = metadata['replays']
  return Math.max(replays, typeof said === 'number' && Number.isSafeInteger(said) ? said : 0)
}
