import { hasCode, RedriveError } from '../../errors.ts'
import type { DeadLetter, Json, LetterSummary, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import { Undecryptable, unknownKey, type Cipher, type DataKey, type Place } from './cipher.ts'
import type { DocumentRecord, KeptLetter, StoredLetter } from '../../store.ts'
import { keyIdOf, readSealed, writeKeyId, writeSealed } from '../../letter/sealed.ts'

type Headers = Record<string, string>

/** The key for each data subject, and for letters without one. */
export interface DataKeys {
  of(subject: string | undefined): DataKey
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Encrypts and decrypts the payload and the headers of letters, and records. */
export class LetterCipher {
  readonly #cipher: Cipher

  constructor(cipher: Cipher) {
    this.#cipher = cipher
  }

  /** The key for the letters of one call that have no data subject. */
  dataKey(): Promise<DataKey> {
    return this.#cipher.dataKey()
  }

  /** The keys for the letters of one call. */
  async dataKeys(subjects: readonly (string | undefined)[]): Promise<DataKeys> {
    const common = await this.#cipher.dataKey()
    const named = [...new Set(subjects)].filter((subject) => subject !== undefined)
    const own = new Map(
      await Promise.all(
        named.map(async (subject): Promise<[string, DataKey]> => [
          subject,
          await this.#subjectKey(subject, common),
        ]),
      ),
    )
    return { of: (subject) => own.get(subject ?? '') ?? common }
  }

  /**
   * While the store is unreachable, the letter goes to the spool with the common key: an erasure
   * overwrites it, once it is in the store.
   */
  async #subjectKey(subject: string, common: DataKey): Promise<DataKey> {
    try {
      return await this.#cipher.subjectKey(subject)
    } catch (error) {
      if (hasCode(error, 'STORE_UNAVAILABLE')) return common
      throw error
    }
  }

  /** A letter that is encrypted already, such as one that could not be decrypted, is unchanged. */
  sealLetter<L extends DeadLetter>(keys: DataKeys, letter: L): L {
    const { id, payload, headers } = letter
    if (keyIdOf(payload) !== undefined) return letter
    const key = keys.of(payload.subject)
    const sealed = { ...letter, payload: this.sealPayload(key, id, payload) }
    if (headers) sealed.headers = this.#sealHeaders(key, id, headers)
    return sealed
  }

  /** A payload with a key id of the caller is encrypted already. */
  sealPayload(key: DataKey, id: string, payload: Payload): Payload {
    if (payload.keyId !== undefined) return payload
    const bytes = this.#cipher.seal(key, payload.bytes, payloadPlace(id, payload))
    return { ...payload, bytes, keyId: writeKeyId(key.keyId) }
  }

  #sealHeaders(key: DataKey, id: string, headers: Headers): Headers {
    return this.#sealJson(key, headers, headersPlace(id))
  }

  sealChange(keys: DataKeys, change: Change): Change {
    const { payload, headers } = change.set
    if (!payload && !headers) return change
    const key = keys.of(change.subject)
    const set = { ...change.set }
    if (payload) set.payload = this.sealPayload(key, change.id, payload)
    if (headers) set.headers = this.#sealHeaders(key, change.id, headers)
    return { ...change, set }
  }

  sealStored(keys: DataKeys, stored: KeptLetter): KeptLetter {
    const { letter, original } = stored
    const sealed = { ...stored, letter: this.sealLetter(keys, letter) }
    if (original)
      sealed.original = this.sealPayload(keys.of(letter.payload.subject), letter.id, original)
    return sealed
  }

  sealRecord(key: DataKey, kind: string, id: string, value: Json): Json {
    return this.#sealJson(key, value, recordPlace(kind, id))
  }

  #sealJson(key: DataKey, value: Json, place: Place): { [name: string]: string } {
    const bytes = this.#cipher.seal(key, encoder.encode(JSON.stringify(value)), place)
    return writeSealed({ keyId: key.keyId, bytes })
  }

  /** The letter in plain. If that is impossible, the encrypted letter, and why in `corrupt`. */
  async openLetter(letter: DeadLetter): Promise<DeadLetter> {
    if (letter.corrupt !== undefined) return letter
    try {
      const { payload, headers } = letter
      const plain = { ...letter, payload: await this.#openPayload(letter.id, payload) }
      if (headers) plain.headers = await this.#openHeaders(letter.id, headers)
      return plain
    } catch (error) {
      return withCorrupt(letter, error)
    }
  }

  openLetters(letters: readonly DeadLetter[]): Promise<DeadLetter[]> {
    return Promise.all(letters.map((letter) => this.openLetter(letter)))
  }

  /** Never rejects: a list must not fail because of one letter. */
  async openSummary(letter: LetterSummary): Promise<LetterSummary> {
    const keyId = keyIdOf(letter.payload)
    if (letter.corrupt !== undefined || (keyId === undefined && !letter.headers)) return letter
    try {
      const plain = { ...letter }
      if (keyId !== undefined) {
        if (!(await this.#cipher.ring.find(keyId))) throw new Undecryptable(unknownKey(keyId))
        const { keyId: _, ...payload } = letter.payload
        plain.payload = payload
      }
      if (letter.headers) plain.headers = await this.#openHeaders(letter.id, letter.headers)
      return plain
    } catch (error) {
      return { ...letter, corrupt: reasonOf(error) }
    }
  }

  openSummaries(letters: readonly LetterSummary[]): Promise<LetterSummary[]> {
    return Promise.all(letters.map((letter) => this.openSummary(letter)))
  }

  async openStored(stored: StoredLetter): Promise<StoredLetter> {
    const letter = await this.openLetter(stored.letter)
    if (!stored.original || letter.corrupt !== undefined) return { ...stored, letter }
    try {
      return { ...stored, letter, original: await this.#openPayload(letter.id, stored.original) }
    } catch (error) {
      return { ...stored, letter: withCorrupt(stored.letter, error) }
    }
  }

  /** Rejects with DECRYPTION_FAILED. */
  async openOriginal(id: string, payload: Payload): Promise<Payload> {
    try {
      return await this.#openPayload(id, payload)
    } catch (error) {
      throw decryptionFailed(`the captured payload of letter ${id}`, keyIdOf(payload), error)
    }
  }

  /** A record that cannot be decrypted stays encrypted. */
  async openListed(kind: string, record: DocumentRecord): Promise<DocumentRecord> {
    try {
      return await this.openRecord(kind, record)
    } catch (error) {
      if (hasCode(error, 'DECRYPTION_FAILED')) return record
      throw error
    }
  }

  /** Rejects with DECRYPTION_FAILED. */
  async openRecord(kind: string, record: DocumentRecord): Promise<DocumentRecord> {
    const sealed = readSealed(record.value)
    if (!sealed) return record
    const { keyId, bytes } = sealed
    try {
      const plain = await this.#cipher.open(keyId, bytes, recordPlace(kind, record.id))
      return { ...record, value: JSON.parse(decoder.decode(plain)) as Json }
    } catch (error) {
      throw decryptionFailed(`record ${kind} ${record.id}`, keyId, error)
    }
  }

  async #openPayload(id: string, payload: Payload): Promise<Payload> {
    const keyId = keyIdOf(payload)
    if (keyId === undefined) return payload
    const bytes = await this.#cipher.open(keyId, payload.bytes, payloadPlace(id, payload))
    const { keyId: _, ...plain } = payload
    return { ...plain, bytes }
  }

  async #openHeaders(id: string, headers: Headers): Promise<Headers> {
    const sealed = readSealed(headers)
    if (!sealed) return headers
    const plain = await this.#cipher.open(sealed.keyId, sealed.bytes, headersPlace(id))
    return JSON.parse(decoder.decode(plain)) as Headers
  }
}

function payloadPlace(id: string, { version }: Payload): Place {
  return { field: 'payload', id, version }
}

function headersPlace(id: string): Place {
  return { field: 'headers', id, version: 0 }
}

function recordPlace(kind: string, id: string): Place {
  return { field: 'record', id: `${kind}/${id}`, version: 0 }
}

/** Rethrows other errors: a provider that is unavailable does not make a letter corrupt. */
function withCorrupt(letter: DeadLetter, error: unknown): DeadLetter {
  if (!(error instanceof Undecryptable)) throw error
  return { ...letter, corrupt: reasonOf(error) }
}

function reasonOf(error: unknown): string {
  const why = error instanceof Error ? error.message : String(error)
  return `it cannot be decrypted: ${why}`
}

function decryptionFailed(what: string, keyId: string | undefined, error: unknown): unknown {
  if (!(error instanceof Undecryptable)) return error
  return new RedriveError(
    'DECRYPTION_FAILED',
    `${what} cannot be decrypted with key ${keyId}: ${error.message}`,
    { cause: error },
  )
}
