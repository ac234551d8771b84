import { crc32 } from 'node:zlib'
import type { DeadLetter, Json, LetterSummary, Payload } from '../../letter/letter.ts'
import { kindOf } from '../../letter/payload.ts'
import { fitsJson } from '../../letter/schema.ts'
import { fieldsOf, fieldsSum, formerNames, checksumFields, type Fields } from './fields.ts'
import { payloadText } from './payload-text.ts'
import type { Stamped } from './document-index.ts'
import { clueFields, repairLetter } from './stand-in.ts'

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
   * Since when the letter waits for its dedupeKey. Until it has it, the letter does not exist for
   * others.
   */
  draftMs?: number
  /** Why the letter could not be read as written. Preserved when the letter is written again. */
  damage?: string
}

export interface LetterDocument extends Partial<Fields>, Stamped {
  /**
   * The letter without history and bytes, and the state of the store, as JSON: the source from
   * which all fields are derived.
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
    letter: { ...rest, payload: factsOf(payload) },
    waitsFor,
    ...(original ? { original: factsOf(original) } : {}),
    ...(birth === undefined ? {} : { birth }),
  }
  // A draft has no search fields.
  const fields = draftMs === undefined ? fieldsOf(letter, waitsFor) : {}
  const strings = { head: JSON.stringify(head), history: JSON.stringify(history) }
  const bytes = base64(payload.bytes)
  const first = original && base64(original.bytes)
  return {
    ...fields,
    ...(draftMs === undefined ? searchTexts(letter) : { draft_ms: draftMs }),
    ...strings,
    payload: bytes,
    ...(first === undefined ? {} : { original: first }),
    sums: {
      head: crc32(strings.head),
      fields: fieldsSum(fields),
      history: crc32(strings.history),
      payload: crc32(bytes),
      ...(first === undefined ? {} : { original: crc32(first) }),
    },
    ...lasting(damage),
  }
}

/** Fields are derived at every write, so that only damage to the letter itself lasts. */
function lasting(damage: string | undefined): { damage?: string } {
  const left = damage?.split('; ').filter((fault) => fault !== wrongFields) ?? []
  return left.length > 0 ? { damage: left.join('; ') } : {}
}

/** For queries by people, and not part of the checksum. */
export function searchTexts(letter: DeadLetter): Partial<LetterDocument> {
  const words = payloadText(letter.payload)
  const task = letter.task ?? workflowTask(letter, words)
  return {
    metadata: letter.metadata,
    ...(task === undefined ? {} : { task }),
    ...(words === undefined ? {} : { payload_text: words }),
  }
}

/**
 * The task of a workflow, from its payload. Undefined if it is not JSON, too long to be searched,
 * or nested too deeply.
 */
function workflowTask({ source, payload }: DeadLetter, words: string | undefined): unknown {
  if (source.kind !== 'workflow' || kindOf(payload.contentType) !== 'json') return undefined
  try {
    const { task } = JSON.parse(words ?? 'null') as { task: Json }
    return fitsJson(task) ? task : undefined
  } catch {
    return undefined
  }
}

/** The fields of a summary, and of a whole letter; other fields are for searching only. */
export const summaryFields = [
  'head',
  'sums',
  'damage',
  'draft_ms',
  ...checksumFields,
  ...Object.values(formerNames),
  ...clueFields,
]
export const wholeFields = [...summaryFields, 'history', 'payload', 'original', 'stamp']

/**
 * Reads a whole letter from its document. A damaged letter has what could be read, and the reason.
 */
export function toRecord(id: string, document: LetterDocument): LetterRecord {
  const { record, faults } = read(id, document)
  const history = parsed<DeadLetter['history']>(document.history, 'history', faults)
  if (!matchesSum(document.history, document.sums?.history))
    faults.push('the history does not match its checksum')
  const bytes = bytesOf(document.payload, document.sums?.payload, 'payload', faults)
  const letter = { ...record.letter, history: Array.isArray(history) ? history : [] } as DeadLetter
  letter.payload = { bytes, ...record.letter.payload }
  const { original: facts, ...rest } = record
  const original =
    facts && document.original !== undefined
      ? {
          bytes: bytesOf(document.original, document.sums?.original, 'captured payload', faults),
          ...facts,
        }
      : undefined
  return { ...rest, letter, ...(original ? { original } : {}), ...damageOf(document, faults) }
}

/** Reads the summary of a letter from a document without its large fields. */
export function summaryOf(id: string, document: LetterDocument): LetterSummary {
  const { record, faults } = read(id, document)
  const { damage } = damageOf(document, faults)
  return { ...record.letter, ...(damage === undefined ? {} : { corrupt: damage }) }
}

/** A letter without its bytes and history, and the state of the store. */
export type Light = Omit<LetterRecord, 'letter' | 'original'> & { letter: LetterSummary }

export function toLightRecord(id: string, document: LetterDocument): Light {
  const { original: _, ...record } = read(id, document).record
  return record
}

/** The letter as it is returned. */
export function letterOf({ letter, damage }: LetterRecord): DeadLetter {
  return damage === undefined ? letter : { ...letter, corrupt: damage }
}

const wrongFields = 'the search fields do not match their checksum'

function read(
  id: string,
  document: LetterDocument,
): { record: Head & Pick<LetterRecord, 'draftMs'>; faults: string[] } {
  const faults: string[] = []
  if (!matchesSum(document.head, document.sums?.head))
    faults.push('the letter does not match its checksum')
  if (fieldsSum(document) !== document.sums?.fields) faults.push(wrongFields)
  const head = parsed<Head>(document.head, 'letter', faults)
  const draft = typeof document.draft_ms === 'number' ? { draftMs: document.draft_ms } : {}
  if (head && faults.length === 0) return { record: { ...head, ...draft }, faults }
  const waitsFor = Array.isArray(head?.waitsFor) ? head.waitsFor : []
  return {
    record: { ...head, letter: repairLetter(id, document, head?.letter), waitsFor, ...draft },
    faults,
  }
}

function damageOf({ damage }: LetterDocument, faults: string[]): { damage?: string } {
  const all = new Set([...(typeof damage === 'string' ? damage.split('; ') : []), ...faults])
  return all.size > 0 ? { damage: [...all].join('; ') } : {}
}

function parsed<T>(text: unknown, what: string, faults: string[]): T | undefined {
  try {
    const value: unknown = JSON.parse(text as string)
    if (typeof value === 'object' && value !== null) return value as T
  } catch {
    // Reported below, like any other text that is not an object.
  }
  faults.push(`the ${what} is not valid JSON`)
  return undefined
}

function matchesSum(text: unknown, sum: number | undefined): boolean {
  return typeof text === 'string' && crc32(text) === sum
}

function bytesOf(
  text: unknown,
  sum: number | undefined,
  what: string,
  faults: string[],
): Uint8Array {
  if (!matchesSum(text, sum)) faults.push(`the ${what} does not match its checksum`)
  return typeof text === 'string' ? new Uint8Array(Buffer.from(text, 'base64')) : new Uint8Array(0)
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function factsOf(payload: Payload): Omit<Payload, 'bytes'> {
  const { bytes: _, ...facts } = payload
  return facts
}
