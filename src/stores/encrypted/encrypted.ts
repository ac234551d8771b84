import type { DeadLetter, Json, LetterSummary } from '../../letter/letter.ts'
import type { LetterQuery, Page } from '../../letter/query.ts'
import { Cipher } from './cipher.ts'
import type { KeyProvider } from '../../check/encryption-keys.ts'
import type {
  KeyRotation,
  KeyUse,
  Records,
  RotateOptions,
  Store,
  StoreHealth,
} from '../../store.ts'
import { applyEach } from '../apply-each.ts'
import { passThrough } from '../pass-through.ts'
import { LetterCipher, type DataKeys } from './letter-cipher.ts'
import { countKeys, encryptedKinds, rotateKeys, subjectOf } from './rotate.ts'
import { subjectKeys } from './subject-keys.ts'

/** What a store with encryption can do besides. */
export interface KeyMethods {
  rotateKeys(options?: RotateOptions): Promise<KeyRotation>
  countKeys(): Promise<KeyUse>
}

/**
 * Encrypts the payloads and headers of a store, and the records that contain parts of them. Callers
 * see plain letters; the store below, its files and its indexes see ciphertext. A letter that
 * cannot be decrypted is returned encrypted, with `corrupt`. Letters that were stored before are
 * returned as they are.
 */
export function encryptedStore<S extends Store>(store: S, keys: KeyProvider): S & KeyMethods {
  // Encrypted as well: the key of the provider wraps the keys of data subjects.
  const subjects = subjectKeys(() => records)
  const cipher = new Cipher(keys, subjects)
  const letters = new LetterCipher(cipher)
  const ongoing = new Set<Promise<unknown>>()
  const withKeys: WithKeys = (of, use) => {
    const call = letters.dataKeys(of).then(use)
    ongoing.add(call)
    return call.finally(() => ongoing.delete(call))
  }
  const records = encryptRecords(store.records, letters, withKeys)
  return passThrough(store, {
    ...readMethods(store, letters, withKeys),
    ...writeMethods(store, letters, withKeys),
    ...optionalMethods(store, letters, withKeys),
    records,
    open: async () => {
      await cipher.ring.current()
      await store.open()
    },
    close: async () => {
      // Calls that still wait for their key count as calls in flight.
      await Promise.allSettled(ongoing)
      await store.close()
    },
    rotateKeys: (options?: RotateOptions) => rotateKeys(store, letters, options),
    countKeys: () => countKeys(store, letters),
    health: async () => withKeyHealth(await store.health(), cipher),
  })
}

/** Runs a call of the store with the data keys for letters of these data subjects. */
type WithKeys = <T>(
  subjects: readonly (string | undefined)[],
  use: (keys: DataKeys) => Promise<T>,
) => Promise<T>

type ReadMethods = Pick<Store, 'get' | 'original' | 'find' | 'stored' | 'claim'>

function readMethods(store: Store, letters: LetterCipher, withKeys: WithKeys): ReadMethods {
  async function find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  async function find(query: LetterQuery): Promise<Page<LetterSummary>>
  async function find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    if (query?.payload === true) {
      const page = await store.find({ ...query, payload: true })
      return { ...page, items: await letters.openLetters(page.items) }
    }
    const page = await store.find(query)
    return { ...page, items: await letters.openSummaries(page.items) }
  }
  return {
    find,
    get: async (ids) => letters.openLetters(await store.get(ids)),
    original: async (id) => {
      const payload = await store.original(id)
      return payload && letters.openOriginal(id, payload)
    },
    stored: async (ids) => {
      const found = await store.stored(ids)
      return Promise.all(found.map((stored) => letters.openStored(stored)))
    },
    claim: async (request) => {
      // A provider that is unavailable must fail before letters are leased.
      const claim = await withKeys([], () => store.claim(request))
      return { ...claim, letters: await letters.openLetters(claim.letters) }
    },
  }
}

function writeMethods(
  store: Store,
  letters: LetterCipher,
  withKeys: WithKeys,
): Pick<Store, 'add' | 'keep' | 'apply' | 'applyAll'> {
  const apply: Store['apply'] = async (changes) => {
    const hasContent = changes.some(({ set }) => set.payload ?? set.headers)
    if (!hasContent) return store.apply(changes)
    return withKeys(
      changes.map(({ subject }) => subject),
      (keys) => store.apply(changes.map((change) => letters.sealChange(keys, change))),
    )
  }
  return {
    apply,
    add: sealedAdd(store, letters, withKeys),
    keep: (stored) =>
      withKeys(
        stored.map(({ letter }) => letter.payload.subject),
        (keys) => store.keep(stored.map((one) => letters.sealStored(keys, one))),
      ),
    applyAll: (versions, moves) => {
      const hasContent = Object.values(moves).some(({ set }) => set.payload ?? set.headers)
      // A ciphertext belongs to one letter, so a move cannot set the same one in many.
      if (!hasContent) return store.applyAll(versions, moves)
      return applyEach(passThrough(store, { apply }), versions, moves)
    },
  }
}

function sealedAdd(
  store: Pick<Store, 'add'>,
  letters: LetterCipher,
  withKeys: WithKeys,
): Store['add'] {
  return (added, capacity) =>
    withKeys(
      added.map(({ payload }) => payload.subject),
      (keys) => {
        const sealed = added.map((letter) => letters.sealLetter(keys, letter))
        return store.add(sealed, capacity)
      },
    )
}

/** The methods that not every store has. */
function optionalMethods(
  store: Store,
  letters: LetterCipher,
  withKeys: WithKeys,
): Partial<Pick<Store, 'within' | 'search'>> {
  const methods: Partial<Pick<Store, 'within' | 'search'>> = {}
  if (store.within)
    methods.within = (client) => ({ add: sealedAdd(store.within!(client), letters, withKeys) })
  if (store.search)
    methods.search = async (text, options) =>
      letters.openSummaries(await store.search!(text, options))
  return methods
}

function encryptRecords(records: Records, letters: LetterCipher, withKeys: WithKeys): Records {
  return passThrough(records, {
    get: async (kind: string, id: string) => {
      const record = await records.get(kind, id)
      return record && encryptedKinds.has(kind) ? letters.openRecord(kind, record) : record
    },
    put: (kind: string, id: string, value: Json, expectedVersion?: number) => {
      if (!encryptedKinds.has(kind)) return records.put(kind, id, value, expectedVersion)
      const subject = subjectOf(kind, value)
      return withKeys([subject], (keys) =>
        records.put(
          kind,
          id,
          letters.sealRecord(keys.of(subject), kind, id, value),
          expectedVersion,
        ),
      )
    },
    list: async (kind: string, options?: Parameters<Records['list']>[1]) => {
      const listed = await records.list(kind, options)
      if (!encryptedKinds.has(kind)) return listed
      return Promise.all(listed.map((record) => letters.openListed(kind, record)))
    },
  })
}

async function withKeyHealth(health: StoreHealth, { ring }: Cipher): Promise<StoreHealth> {
  try {
    const { id } = await ring.current()
    return { ...health, checks: { ...health.checks, encryption: `with key ${id}` } }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { ...health, ok: false, problems: [...health.problems, why] }
  }
}
