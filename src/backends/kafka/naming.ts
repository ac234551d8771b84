import { createHash } from 'node:crypto'

const hashLength = 64

/**
 * A name as part of a topic's name. Topics have few characters, and Kafka takes a dot and an underscore for the same when it looks
 * whether a name is free; so all but letters, digits and - are written as _2E. A name that grows too long ends in its hash; no other
 * name has `_-` in it.
 */
export function escaped(name: string, maxLength: number): string {
  const text = name.replaceAll(/[^A-Za-z0-9-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${hex(byte)}`).join(''),
  )
  if (text.length <= maxLength) return text
  const hash = createHash('sha256').update(name).digest('hex')
  return `${text.slice(0, maxLength - hashLength - 2)}_-${hash}`
}

const hex = (byte: number): string => byte.toString(16).toUpperCase().padStart(2, '0')
