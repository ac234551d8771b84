import { createHash } from 'node:crypto'

/** Names of topics may have 249 characters; a prefix has up to 60 of them. */
const maxLength = 180
const kept = 100

/**
 * The topic of a mailbox, and also its consumer group. Topics have few characters, and Kafka takes a dot and an underscore for the same
 * when it looks whether a name is free; so all but letters, digits and - are written as _2E. A name that grows too long ends in its
 * hash; no other name has `_-` in it.
 */
export function topicOf(prefix: string, name: string): string {
  const escaped = name.replaceAll(/[^A-Za-z0-9-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${hex(byte)}`).join(''),
  )
  if (escaped.length <= maxLength) return `${prefix}${escaped}`
  const hash = createHash('sha256').update(name).digest('hex')
  return `${prefix}${escaped.slice(0, kept)}_-${hash}`
}

const hex = (byte: number): string => byte.toString(16).toUpperCase().padStart(2, '0')
