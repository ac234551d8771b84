import { hash } from 'node:crypto'

/** The length of the checksum before a string. */
export const checksumLength = 8

export const checksumOf = (text: string): string => hash('sha1', text).slice(0, checksumLength)

export const prefixChecksum = (text: string): string => checksumOf(text) + text
