import { hash } from 'node:crypto'

/** Bytes of a text that lie before it and are not part of it: its checksum. */
export const sealLength = 8

export const sealOf = (text: string): string => hash('sha1', text).slice(0, sealLength)

export const sealed = (text: string): string => sealOf(text) + text
