import { hasCode } from '../../errors.ts'
import { subjectKind } from '../../letter/content.ts'
import { states, type Json, type LetterSummary, type Payload } from '../../letter/letter.ts'
import { keyIdOf, readSealed } from '../../letter/sealed.ts'
import type { KeyRotation, KeyUse, RotateOptions, Store, StoredLetter } from '../../store.ts'
import type { LetterCipher } from './letter-cipher.ts'

/** Letters and records that are read at once. */
const pageSize = 100

const editKind = 'edit'

/**
 * Kinds of records that contain parts of payloads, or keys of data subjects: saved edits, the input
 * of bulk actions, the filters of saved views, and responses of the server.
 */
export const encryptedKinds: ReadonlySet<string> = new Set([
  editKind,
  'bulk',
  'view',
  'idempotency',
  subjectKind,
])

/** What is not encrypted counts under this name, which is no valid id of a key. */
const plainName = '(none)'

/**
 * Encrypts everything with the current key that is encrypted with another key, or not at all. Each
 * letter is replaced by compare-and-set, so an interrupted rotation is continued by another one.
 */
export async function rotateKeys(
  below: Store,
  letters: LetterCipher,
  { onProgress = () => {}, signal }: RotateOptions = {},
): Promise<KeyRotation> {
  const { keyId: current } = await letters.dataKey()
  const rotation: KeyRotation = { current, checked: 0, rotated: 0, skipped: 0, failed: 0 }
  for await (const page of storedPages(below, current)) {
    if (signal?.aborted) return { ...rotation, stopped: true }
    rotation.checked += page.checked
    for (const stored of page.stored)
      if (keysOfStored(stored).some((id) => id !== current))
        rotation[await rotateLetter(below, letters, stored)] += 1
    onProgress({ ...rotation })
  }
  for await (const { kind, record } of encryptedRecords(below)) {
    if (signal?.aborted) return { ...rotation, stopped: true }
    rotation.checked += 1
    if (readSealed(record.value)?.keyId === current) continue
    rotation[await rotateRecord(below, letters, kind, record)] += 1
  }
  onProgress({ ...rotation })
  return rotation
}

type Outcome = 'rotated' | 'skipped' | 'failed'

async function rotateLetter(
  below: Store,
  letters: LetterCipher,
  stored: StoredLetter,
): Promise<Outcome> {
  const { version, state } = stored.letter
  // A leased letter belongs to its worker, and a replacement could shorten its lease.
  if (state === 'retrying') return 'skipped'
  const plain = await letters.openStored(stored)
  if (plain.letter.corrupt !== undefined) return 'failed'
  const keys = await letters.dataKeys([stored.letter.payload.subject])
  const sealed = letters.sealStored(keys, plain)
  const next = { ...sealed, letter: { ...sealed.letter, version: version + 1 }, replaces: version }
  const [result] = await below.keep([next])
  return result === 'written' ? 'rotated' : 'skipped'
}

type ListedRecord = Awaited<ReturnType<Store['records']['list']>>[number]

async function rotateRecord(
  below: Store,
  letters: LetterCipher,
  kind: string,
  record: ListedRecord,
): Promise<Outcome> {
  const { id, version } = record
  let value: Json
  try {
    value = (await letters.openRecord(kind, record)).value
  } catch (error) {
    if (hasCode(error, 'DECRYPTION_FAILED')) return 'failed'
    throw error
  }
  const subject = subjectOf(kind, value)
  const key = (await letters.dataKeys([subject])).of(subject)
  const sealed = letters.sealRecord(key, kind, id, value)
  const result = await below.records.put(kind, id, sealed, version)
  return result === 'written' ? 'rotated' : 'skipped'
}

/** The data subject of a record. Only saved edits name one. */
export function subjectOf(kind: string, value: Json): string | undefined {
  if (kind !== editKind) return undefined
  const { subject } = (value ?? {}) as { subject?: Json }
  return typeof subject === 'string' ? subject : undefined
}

/** The number of letters and of records that use each key. Reads all of them. */
export async function countKeys(below: Store, letters: LetterCipher): Promise<KeyUse> {
  const { keyId: current } = await letters.dataKey()
  const use: KeyUse = { current, letters: {}, records: {} }
  const count = (counts: Record<string, number>, ids: readonly string[]): void => {
    for (const id of new Set(ids)) counts[id] = (counts[id] ?? 0) + 1
  }
  for await (const page of storedPages(below, current)) {
    const inCurrent = page.checked - page.stored.length
    if (inCurrent > 0) use.letters[current] = (use.letters[current] ?? 0) + inCurrent
    for (const stored of page.stored) count(use.letters, keysOfStored(stored))
  }
  for await (const { record } of encryptedRecords(below))
    count(use.records, [readSealed(record.value)?.keyId ?? plainName])
  return use
}

/** All letters by page, with those that may use another key than the current one. */
async function* storedPages(
  below: Store,
  current: string,
): AsyncGenerator<{ checked: number; stored: StoredLetter[] }> {
  for (let cursor: string | undefined; ;) {
    const from = cursor === undefined ? {} : { cursor }
    const query = { order: 'oldest', limit: pageSize, ...from } as const
    const page = await below.find({ ...query, state: [...states] })
    const ids = page.items.filter((letter) => mayUseOther(letter, current)).map(({ id }) => id)
    const stored = ids.length > 0 ? await below.stored(ids) : []
    yield { checked: page.items.length, stored }
    if (page.cursor === undefined) return
    cursor = page.cursor
  }
}

/** A summary does not show the key of the captured payload of an edited letter. */
function mayUseOther({ payload, headers }: LetterSummary, current: string): boolean {
  if (payload.version > 1) return true
  return [keyOfPayload(payload), keyOfHeaders(headers)].some(
    (id) => id !== undefined && id !== current,
  )
}

/** The keys that a letter uses. */
function keysOfStored({ letter, original }: StoredLetter): string[] {
  const payloads = [letter.payload, ...(original ? [original] : [])]
  const ids = [...payloads.map(keyOfPayload), keyOfHeaders(letter.headers)]
  return ids.filter((id) => id !== undefined)
}

/** Undefined: the caller encrypted the payload. */
function keyOfPayload(payload: Pick<Payload, 'keyId'>): string | undefined {
  return keyIdOf(payload) ?? (payload.keyId === undefined ? plainName : undefined)
}

function keyOfHeaders(headers: Record<string, string> | undefined): string | undefined {
  return headers && (readSealed(headers)?.keyId ?? plainName)
}

async function* encryptedRecords(
  below: Store,
): AsyncGenerator<{ kind: string; record: ListedRecord }> {
  for (const kind of encryptedKinds)
    for (let after: string | undefined; ;) {
      const from = after === undefined ? {} : { after }
      const records = await below.records.list(kind, { limit: pageSize, ...from })
      for (const record of records) yield { kind, record }
      if (records.length < pageSize) break
      after = records.at(-1)!.id
    }
}
