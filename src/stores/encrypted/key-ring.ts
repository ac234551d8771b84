import { createSecretKey, type KeyObject } from 'node:crypto'
import { RedriveError } from '../../errors.ts'
import {
  keyBytes,
  keyIdPattern,
  type EncryptionKey,
  type KeyProvider,
} from '../../check/encryption-keys.ts'

/** A key of the provider, checked and ready to use. */
export interface RingKey {
  id: string
  key: KeyObject
}

/** The keys of a provider, cached by id. */
export class KeyRing {
  readonly #provider: KeyProvider
  readonly #keys = new Map<string, KeyObject>()
  #last: RingKey | undefined

  constructor(provider: KeyProvider) {
    this.#provider = provider
  }

  /** The current key. While the provider is unavailable: the last one that it returned. */
  async current(): Promise<RingKey> {
    let given: EncryptionKey
    try {
      given = await this.#provider.current()
    } catch (cause) {
      if (this.#last) return this.#last
      throw unavailable(cause)
    }
    const { id, key } = given
    if (this.#last?.id === id) return this.#last
    if (typeof id !== 'string' || !keyIdPattern.test(id))
      throw new RedriveError(
        'INVALID_CONFIG',
        'the key provider must return an id of 1 to 100 letters, digits, dots, hyphens and underscores',
      )
    return (this.#last = { id, key: this.#remember(id, key) })
  }

  /** Undefined: there is no such key. Rejects with STORE_UNAVAILABLE if the provider fails. */
  async find(id: string): Promise<KeyObject | undefined> {
    const known = this.#keys.get(id)
    if (known) return known
    let key: Uint8Array | undefined
    try {
      key = await this.#provider.get(id)
    } catch (cause) {
      throw unavailable(cause)
    }
    return key && this.#remember(id, key)
  }

  #remember(id: string, bytes: Uint8Array): KeyObject {
    if (!(bytes instanceof Uint8Array) || bytes.byteLength !== keyBytes)
      throw new RedriveError('INVALID_CONFIG', `the key provider must return 32 bytes as key ${id}`)
    const key = createSecretKey(bytes)
    this.#keys.set(id, key)
    return key
  }
}

function unavailable(cause: unknown): RedriveError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError('STORE_UNAVAILABLE', `the key provider failed: ${why}`, { cause })
}
