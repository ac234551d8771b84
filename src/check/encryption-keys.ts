import { RedriveError } from '../errors.ts'

/** A key that encrypts data keys, and its id. */
export interface EncryptionKey {
  /** 1 to 100 letters, digits, dots, hyphens and underscores. It is stored with each letter. */
  id: string
  /** 32 bytes. */
  key: Uint8Array
}

/** Where keys come from. Both methods may return promises. */
export interface KeyProvider {
  /** The key that new letters are encrypted with. Called for each write: cache what is slow. */
  current(): EncryptionKey | Promise<EncryptionKey>
  /**
   * The bytes of a key, for letters that are stored already. Undefined: there is no such key. An
   * error means that the provider is unavailable, and may recover.
   */
  get(id: string): Uint8Array | undefined | Promise<Uint8Array | undefined>
}

/** Keys by id: 32 bytes each, or their base64. */
export interface ConfiguredKeys {
  keys: Readonly<Record<string, string | Uint8Array>>
  /** Id of the key that new letters are encrypted with. */
  current: string
}

export const keyBytes = 32
export const keyIdPattern = /^[\w.-]{1,100}$/
export const keyForm = 'must be 32 bytes, or their base64: openssl rand -base64 32 creates a key'

/** The bytes of a key. Undefined: it is not 32 bytes, or not their base64. */
export function parseKey(key: unknown): Uint8Array | undefined {
  if (key instanceof Uint8Array) return key.byteLength === keyBytes ? key : undefined
  if (typeof key !== 'string' || !/^[A-Za-z\d+/_-]{43}=?$/.test(key.trim())) return undefined
  const bytes = Buffer.from(key.trim(), 'base64')
  return bytes.length === keyBytes ? bytes : undefined
}

export function isKeyProvider(value: unknown): value is KeyProvider {
  const { current, get } = (value ?? {}) as Partial<KeyProvider>
  return typeof current === 'function' && typeof get === 'function'
}

/** A provider of given keys. Throws INVALID_CONFIG that names the key, never its value. */
export function provideKeys({ keys, current }: ConfiguredKeys): KeyProvider {
  const parsed = new Map<string, Uint8Array>()
  for (const [id, given] of Object.entries(keys)) {
    if (!keyIdPattern.test(id))
      throw invalid(
        `the key id ${JSON.stringify(id.slice(0, 100))} must be 1 to 100 letters, digits, dots, hyphens and underscores`,
      )
    const key = parseKey(given)
    if (!key) throw invalid(`the key ${id} ${keyForm}`)
    parsed.set(id, key)
  }
  const key = parsed.get(current)
  if (!key)
    throw invalid(
      `\`current\` must be the id of one of the keys (${[...parsed.keys()].join(', ') || 'there are none'}), got ${JSON.stringify(String(current).slice(0, 100))}`,
    )
  return { current: () => ({ id: current, key }), get: (id) => parsed.get(id) }
}

function invalid(why: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', `option "encryption": ${why}`)
}
