// The form of encrypted values in the store below.
import type { Json, Payload } from './letter.ts'

/** The one header, or the one key of a record, that holds the encrypted ones. */
const sealedName = 'redrive-encrypted'

/** Before the id of a key that this package encrypted with. Callers may store other ids. */
const prefix = 'redrive:'

export function writeKeyId(keyId: string): string {
  return prefix + keyId
}

/** The id of our key that the payload is encrypted with. Undefined: it is not encrypted by us. */
export function keyIdOf({ keyId }: Pick<Payload, 'keyId'>): string | undefined {
  return keyId?.startsWith(prefix) ? keyId.slice(prefix.length) : undefined
}

/** Encrypted headers, or an encrypted record. */
export interface Sealed {
  keyId: string
  bytes: Uint8Array
}

export function writeSealed({ keyId, bytes }: Sealed): { [sealedName]: string } {
  const { buffer, byteOffset, byteLength } = bytes
  return {
    [sealedName]: `${keyId} ${Buffer.from(buffer, byteOffset, byteLength).toString('base64')}`,
  }
}

/** Undefined: the value is not encrypted. */
export function readSealed(value: Json | undefined): Sealed | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const keys = Object.keys(value)
  const text = keys.length === 1 ? value[sealedName] : undefined
  if (typeof text !== 'string') return undefined
  const [, keyId, base64] = /^([\w.-]{1,100}) ([\w+/]+={0,2})$/.exec(text) ?? []
  if (keyId === undefined || base64 === undefined) return undefined
  return { keyId, bytes: Buffer.from(base64, 'base64') }
}
