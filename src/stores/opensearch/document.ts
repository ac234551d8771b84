import { crc32 } from 'node:zlib'
import type { DeadLetter, Json, LetterSummary, Payload } from '../../letter/letter.ts'
import { kindOf } from '../../letter/payload.ts'
import { fitsJson } from '../../letter/schema.ts'
import { fieldsOf, checksumOf, formerNames, checksumFields, type Fields } from './fields.ts'
import { decodePayloadText } from './payload-text.ts'
import type { Stamped } from './document-index.ts'
import { repairFields, repairLetter } from './repair.ts'

/** A letter with the state that the store adds. */
export interface LetterRecord {
  letter: DeadLetter
  /** The payload as captured, once an edit has replaced it. */
  original?: Payload
  waitsFor: string[]
  /**
   * Distinguishes this letter from an earlier one with the same id, in the document of its
   * dedupeKey.
   */
  birth?: string
  /**
   * Since when the letter waits for its dedupeKey. Until it holds the key, no reader sees the
   * letter.
   */
  draftMs?: number
  /** Why the letter could not be read as written. Preserved when the letter is written again. */
  damage?: string
}

export interface LetterDocument extends Partial<Fields>, Stamped {
  /**
   * The letter without history and bytes, and the state that the store adds, as JSON. The search
   * fields are derived from it.
   */
  head: string
  history: string
  payload: string
  original?: string
  payload_text?: string
  task?: unknown
  metadata?: unknown
  draft_ms?: number
  sums: { head: number; fields: number; history: number; payload: number; original?: number }
  damage?: string
}

interface Head {
  letter: LetterSummary
  original?: Omit<Payload, 'bytes'>
  waitsFor: string[]
  birth?: string
}

export function documentOf(record: LetterRecord): LetterDocument {
  const { letter, original, waitsFor, birth, draftMs, damage } = record
  const { history, payload, corrupt: _, ...rest } = letter
  const head: Head = {
    letter: { ...rest, payload: withoutBytes(payload) },
    waitsFor,
    ...(original ? { original: withoutBytes(original) } : {}),
    ...(birth === undefined ? {} : { birth }),
  }
  // A draft has no search fields.
  const fields = draftMs === undefined ? fieldsOf(letter, waitsFor) : {}
  const strings = { head: JSON.stringify(head), history: JSON.stringify(history) }
  const payloadBytes = toBase64(payload.bytes)
  const originalBytes = original && toBase64(original.bytes)
  return {
    ...fields,
    ...(draftMs === undefined ? textFieldsOf(letter) : { draft_ms: draftMs }),
    ...strings,
    payload: payloadBytes,
    ...(originalBytes === undefined ? {} : { original: originalBytes }),
    sums: {
      head: crc32(strings.head),
      fields: checksumOf(fields),
      history: crc32(strings.history),
      payload: crc32(payloadBytes),
      ...(originalBytes === undefined ? {} : { original: crc32(originalBytes) }),
    },
    ...persistentDamage(damage),
  }
}

/** Every write derives the search fields again, so only damage to the letter itself persists. */
function persistentDamage(damage: string | undefined): { damage?: string } {
  const problems = damage?.split('; ').filter((problem) => problem !== wrongFields) ?? []
  return problems.length > 0 ? { damage: problems.join('; ') } : {}
}

/** Fields for queries by people. They are not part of the checksum. */
export function textFieldsOf(letter: DeadLetter): Partial<LetterDocument> {
  const payloadText = decodePayloadText(letter.payload)
  const task = letter.task ?? workflowTaskOf(letter, payloadText)
  return {
    metadata: letter.metadata,
    ...(task === undefined ? {} : { task }),
    ...(payloadText === undefined ? {} : { payload_text: payloadText }),
  }
}

/**
 * The task of a workflow, from its payload. Undefined if the payload is not JSON, too long to be
 * searched, or nested too deeply.
 */
function workflowTaskOf({ source, payload }: DeadLetter, text: string | undefined): unknown {
  if (source.kind !== 'workflow' || kindOf(payload.contentType) !== 'json') return undefined
  try {
    const { task } = JSON.parse(text ?? 'null') as { task: Json }
    return fitsJson(task) ? task : undefined
  } catch {
    return undefined
  }
}

/** The fields that are read for a summary. */
export const summaryFields = [
  'head',
  'sums',
  'damage',
  'draft_ms',
  ...checksumFields,
  ...Object.values(formerNames),
  ...repairFields,
]
/** The fields that are read for a whole letter. Other fields are only searched. */
export const wholeFields = [...summaryFields, 'history', 'payload', 'original', 'stamp']

/** Reads a whole letter from its document. A damaged letter is repaired, and has `damage`. */
export function toRecord(id: string, document: LetterDocument): LetterRecord {
  const { record, problems } = readHead(id, document)
  const history = parseObject<DeadLetter['history']>(document.history, 'history', problems)
  if (!matchesSum(document.history, document.sums?.history))
    problems.push('the history does not match its checksum')
  const bytes = bytesOf(document.payload, document.sums?.payload, 'payload', problems)
  const letter = { ...record.letter, history: Array.isArray(history) ? history : [] } as DeadLetter
  letter.payload = { bytes, ...record.letter.payload }
  const { original: originalHead, ...rest } = record
  const original =
    originalHead && document.original !== undefined
      ? {
          bytes: bytesOf(document.original, document.sums?.original, 'captured payload', problems),
          ...originalHead,
        }
      : undefined
  return { ...rest, letter, ...(original ? { original } : {}), ...damageOf(document, problems) }
}

/** Reads the summary of a letter from a document without its large fields. */
export function summaryOf(id: string, document: LetterDocument): LetterSummary {
  const { record, problems } = readHead(id, document)
  const { damage } = damageOf(document, problems)
  return { ...record.letter, ...(damage === undefined ? {} : { corrupt: damage }) }
}

/** A letter without its bytes and history, with the state that the store adds. */
export type LightRecord = Omit<LetterRecord, 'letter' | 'original'> & { letter: LetterSummary }

export function toLightRecord(id: string, document: LetterDocument): LightRecord {
  const { original: _, ...record } = readHead(id, document).record
  return record
}

/** The letter as it is returned to callers. */
export function letterOf({ letter, damage }: LetterRecord): DeadLetter {
  return damage === undefined ? letter : { ...letter, corrupt: damage }
}

const wrongFields = 'the search fields do not match their checksum'

function readHead(
  id: string,
  document: LetterDocument,
): { record: Head & Pick<LetterRecord, 'draftMs'>; problems: string[] } {
  const problems: string[] = []
  if (!matchesSum(document.head, document.sums?.head))
    problems.push('the letter does not match its checksum')
  if (checksumOf(document) !== document.sums?.fields) problems.push(wrongFields)
  const head = parseObject<Head>(document.head, 'letter', problems)
  const draft = typeof document.draft_ms === 'number' ? { draftMs: document.draft_ms } : {}
  if (head && problems.length === 0) return { record: { ...head, ...draft }, problems }
  const waitsFor = Array.isArray(head?.waitsFor) ? head.waitsFor : []
  return {
    record: { ...head, letter: repairLetter(id, document, head?.letter), waitsFor, ...draft },
    problems,
  }
}

function damageOf({ damage }: LetterDocument, problems: string[]): { damage?: string } {
  const all = new Set([...(typeof damage === 'string' ? damage.split('; ') : []), ...problems])
  return all.size > 0 ? { damage: [...all].join('; ') } : {}
}

function parseObject<T>(text: unknown, what: string, problems: string[]): T | undefined {
  try {
    const value: unknown = JSON.parse(text as string)
    if (typeof value === 'object' && value !== null) return value as T
  } catch {
    // Reported below, like JSON that is not an object.
  }
  problems.push(`the ${what} is not valid JSON`)
  return undefined
}

function matchesSum(text: unknown, sum: number | undefined): boolean {
  return typeof text === 'string' && crc32(text) === sum
}

function bytesOf(
  text: unknown,
  sum: number | undefined,
  what: string,
  problems: string[],
): Uint8Array {
  if (!matchesSum(text, sum)) problems.push(`the ${what} does not match its checksum`)
  return typeof text === 'string' ? new Uint8Array(Buffer.from(text, 'base64')) : new Uint8Array(0)
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function withoutBytes(payload: Payload): Omit<Payload, 'bytes'> {
  const { bytes: _, ...rest } = payload
  return rest
}
