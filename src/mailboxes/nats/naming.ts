import { createHash } from 'node:crypto'

/** The JetStream names of one mailbox. The name of the consumer is the same for all. */
export interface Naming {
  stream: string
  subject: string
}

export const consumer = 'redrive'

/** Stream names have at most 255 characters, and are used as folder names. */
const maxLength = 180
const readableLength = 100

/**
 * Stream names cannot contain dots, stars, slashes or spaces, so these and all non-ASCII characters
 * are written as =2E. A name that becomes too long ends in its hash; no other name contains `=-`.
 */
export function toNaming(prefix: string, name: string): Naming {
  const escaped = name.replaceAll(/[^A-Za-z0-9_-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `=${hex(byte)}`).join(''),
  )
  const short =
    escaped.length <= maxLength
      ? escaped
      : `${escaped.slice(0, readableLength)}=-${createHash('sha256').update(name).digest('hex')}`
  return { stream: `${prefix}-${short}`, subject: `${prefix}.${short}` }
}

const hex = (byte: number): string => byte.toString(16).toUpperCase().padStart(2, '0')
