import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto'
import { createRandomBytes } from '../../clock/secret.ts'
import { KeyRing } from './key-ring.ts'
import { keyBytes, type KeyProvider } from '../../check/encryption-keys.ts'

/** Where a ciphertext is stored. It is authenticated: a ciphertext is valid in one place only. */
export interface Place {
  field: 'payload' | 'headers' | 'record'
  /** Id of the letter; of a record its kind and id. */
  id: string
  /** Version of the payload. 0 for other fields. */
  version: number
}

/** A random key that encrypts letters, and itself encrypted with a key of the provider. */
export interface DataKey {
  keyId: string
  key: KeyObject
  wrapped: Uint8Array
  /** The data subject whose key wraps it. Absent: it is wrapped with the key of the provider. */
  subject?: string
}

/** The keys of data subjects, by the keyed hash of the subject. */
export interface SubjectKeys {
  /** Undefined: the subject was erased. */
  find(subject: string): Promise<KeyObject | undefined>
  /** Creates the key if there is none. */
  create(subject: string): Promise<KeyObject>
}

/** Why a ciphertext cannot be decrypted. */
export class Undecryptable extends Error {}

const noSubjects: SubjectKeys = {
  find: async () => undefined,
  create: () => Promise.reject(new Error('there are no keys of data subjects here')),
}

const algorithm = 'aes-256-gcm'
const format = 1
/** Before the wrapped data key, the bytes have the hash of the subject. */
const subjectFormat = 2
const subjectBytes = 16
const nonceBytes = 12
const tagBytes = 16
const wrappedBytes = nonceBytes + keyBytes + tagBytes
/** A random nonce is safe for far more uses of one key: 2^32. */
const usesPerDataKey = 2 ** 20
/** Unwrapped data keys in memory. Each process creates one, and a new one after many uses. */
const maxUnwrapped = 1000

/**
 * Envelope encryption. The bytes are: the format, the wrapped data key, a nonce, the ciphertext and
 * its tag. They contain all that is needed to decrypt them, except the key of the provider.
 */
export class Cipher {
  readonly ring: KeyRing
  readonly #unwrapped = new Map<string, KeyObject>()
  readonly #subjects: SubjectKeys
  #dataKey: DataKey | undefined
  #uses = 0

  constructor(provider: KeyProvider, subjects: SubjectKeys = noSubjects) {
    this.ring = new KeyRing(provider)
    this.#subjects = subjects
  }

  /** A data key that cannot be used any more once the key of the subject is destroyed. */
  async subjectKey(subject: string): Promise<DataKey> {
    const [{ id: keyId }, wrapping] = await Promise.all([
      this.ring.current(),
      this.#subjects.create(subject),
    ])
    const bytes = createRandomBytes(keyBytes)
    const wrapped = encrypt(wrapping, bytes, wrapAad(keyId, subject))
    const key = createSecretKey(bytes)
    bytes.fill(0)
    return { keyId, key, wrapped, subject }
  }

  /** The data key for the next writes, wrapped with the current key of the provider. */
  async dataKey(): Promise<DataKey> {
    const { id: keyId, key: wrapping } = await this.ring.current()
    if (this.#dataKey?.keyId === keyId && this.#uses < usesPerDataKey) return this.#dataKey
    const bytes = createRandomBytes(keyBytes)
    const wrapped = encrypt(wrapping, bytes, wrapAad(keyId))
    const key = createSecretKey(bytes)
    bytes.fill(0)
    this.#uses = 0
    return (this.#dataKey = { keyId, key, wrapped })
  }

  seal({ keyId, key, wrapped, subject }: DataKey, plain: Uint8Array, place: Place): Uint8Array {
    this.#uses += 1
    const head = subject === undefined ? new Uint8Array() : Buffer.from(subject, 'hex')
    const offset = 1 + head.length
    const sealed = encrypt(key, plain, dataAad(keyId, place), offset + wrappedBytes)
    sealed[0] = subject === undefined ? format : subjectFormat
    sealed.set(head, 1)
    sealed.set(wrapped, offset)
    return sealed
  }

  /** Throws `Undecryptable`, or STORE_UNAVAILABLE if the provider fails. */
  async open(keyId: string, sealed: Uint8Array, place: Place): Promise<Uint8Array> {
    if (sealed.length < 1 + wrappedBytes + nonceBytes + tagBytes)
      throw new Undecryptable('the ciphertext is incomplete')
    if (sealed[0] !== format && sealed[0] !== subjectFormat)
      throw new Undecryptable('a newer version of Redrive wrote it, or it was changed')
    const offset = sealed[0] === format ? 1 : 1 + subjectBytes
    const wrapped = sealed.subarray(offset, offset + wrappedBytes)
    const key =
      sealed[0] === format
        ? await this.#unwrap(keyId, wrapped)
        : await this.#unwrapOfSubject(keyId, sealed.subarray(1, offset), wrapped)
    const plain = decrypt(key, sealed.subarray(offset + wrappedBytes), dataAad(keyId, place))
    if (!plain) throw new Undecryptable('the ciphertext was changed, or moved from another letter')
    return plain
  }

  /** Not kept in memory: another process may destroy the key of the subject. */
  async #unwrapOfSubject(keyId: string, head: Uint8Array, wrapped: Uint8Array): Promise<KeyObject> {
    const subject = Buffer.from(head).toString('hex')
    const wrapping = await this.#subjects.find(subject)
    if (!wrapping) throw new Undecryptable('the key of its data subject was destroyed')
    const bytes = decrypt(wrapping, wrapped, wrapAad(keyId, subject))
    if (!bytes) throw new Undecryptable('the key of its data subject was destroyed')
    return createSecretKey(bytes)
  }

  async #unwrap(keyId: string, wrapped: Uint8Array): Promise<KeyObject> {
    const name = keyId + Buffer.from(wrapped).toString('latin1')
    const known = this.#unwrapped.get(name)
    if (known) return known
    const wrapping = await this.ring.find(keyId)
    if (!wrapping) throw new Undecryptable(unknownKey(keyId))
    const bytes = decrypt(wrapping, wrapped, wrapAad(keyId))
    if (!bytes)
      throw new Undecryptable(
        `key ${keyId} is not the key that it was encrypted with, or the ciphertext was changed`,
      )
    const key = createSecretKey(bytes)
    bytes.fill(0)
    const [oldest] = this.#unwrapped.keys()
    if (oldest !== undefined && this.#unwrapped.size >= maxUnwrapped) this.#unwrapped.delete(oldest)
    this.#unwrapped.set(name, key)
    return key
  }
}

export function unknownKey(keyId: string): string {
  return `key ${keyId} is unknown in this process: add it to the option encryption`
}

function wrapAad(keyId: string, subject?: string): Uint8Array {
  if (subject === undefined)
    return Buffer.from(JSON.stringify(['redrive', format, 'data-key', keyId]))
  return Buffer.from(JSON.stringify(['redrive', subjectFormat, 'data-key', keyId, subject]))
}

function dataAad(keyId: string, { field, id, version }: Place): Uint8Array {
  return Buffer.from(JSON.stringify(['redrive', format, field, id, version, keyId]))
}

/** Nonce, ciphertext and tag, after `offset` bytes that the caller fills. */
function encrypt(
  key: KeyObject,
  plain: Uint8Array,
  aad: Uint8Array,
  offset = 0,
): Uint8Array<ArrayBuffer> {
  const nonce = createRandomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(aad)
  const body = cipher.update(plain)
  cipher.final()
  const sealed = new Uint8Array(offset + nonceBytes + body.length + tagBytes)
  sealed.set(nonce, offset)
  sealed.set(body, offset + nonceBytes)
  sealed.set(cipher.getAuthTag(), offset + nonceBytes + body.length)
  return sealed
}

/** Undefined: the key is wrong, or the bytes or their place were changed. */
function decrypt(
  key: KeyObject,
  sealed: Uint8Array,
  aad: Uint8Array,
): Uint8Array<ArrayBuffer> | undefined {
  const end = sealed.length - tagBytes
  const nonce = sealed.subarray(0, nonceBytes)
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(aad)
  decipher.setAuthTag(sealed.subarray(end))
  const plain = decipher.update(sealed.subarray(nonceBytes, end))
  try {
    decipher.final()
  } catch {
    return undefined
  }
  const bytes = new Uint8Array(plain.length)
  bytes.set(plain)
  return bytes
}
