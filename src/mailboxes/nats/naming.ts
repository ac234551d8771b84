import { createHash } from 'node:crypto'

/** What one mailbox is called in JetStream. Its consumer has the same name in all of them. */
export interface Naming {
  stream: string
  subject: string
}

export const consumer = 'redrive'

/** Names of streams may have 255 characters, and stand as folders on disks that know no more. */
const maxLength = 180
const kept = 100

/**
 * Streams cannot have dots, stars, slashes or spaces in their names, so these and all that is not ASCII are written as =2E. A name that
 * grows too long ends in its hash; no other name has `=-` in it.
 */
export function namingOf(prefix: string, name: string): Naming {
  const escaped = name.replaceAll(/[^A-Za-z0-9_-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `=${hex(byte)}`).join(''),
  )
  const short =
    escaped.length <= maxLength
      ? escaped
      : `${escaped.slice(0, kept)}=-${createHash('sha256').update(name).digest('hex')}`
  return { stream: `${prefix}-${short}`, subject: `${prefix}.${short}` }
}

const hex = (byte: number): string => byte.toString(16).toUpperCase().padStart(2, '0')
