import { isUtf8 } from 'node:buffer'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { BulkMoves, Change } from '../../letter/moves.ts'
import type { KeptLetter, StoredLetter } from '../../store.ts'
import { encodeChange, groupChanges, type ChangeGroup, type RowChange } from '../rows/change.ts'
import { stateCode, states } from '../rows/codes.ts'
import { at, columns, type Column, type SqlValue } from '../rows/columns.ts'
import { decodeLetter, decodeOriginal, type LoadedLetter } from '../rows/decode.ts'
import { encodeLetter, factsOf } from '../rows/encode.ts'

/*
 * What the caller and the thread send each other: flat arrays of primitives, which are much cheaper
 * to copy between threads than objects.
 */

/** Bytes that are UTF-8 travel and are stored as a string: a string is cheaper than an array. */
export type StoredBytes = string | Uint8Array

/**
 * A letter in both directions: its row, then its queue and body, then a note. To the thread, the
 * note is a JSON list of the ids that the letter waits for; from the thread, why a part of it
 * cannot be read.
 */
export type SentLetter = SqlValue[]

/** The positions after the columns. */
const width = columns.length
export const after = {
  queue: width,
  origin: width + 1,
  originCrc: width + 2,
  bytes: width + 3,
  bytesCrc: width + 4,
  note: width + 5,
} as const

/**
 * A letter of `keep`, the bytes of the edit that replaced its payload, and the version that it
 * replaces.
 */
export type SentStored = [letter: SentLetter, edit: StoredBytes | null, replaces: number | null]

/** A letter of `stored`: as it is, as it was captured if it was edited, and what it waits for. */
export type LoadedStored = [letter: SentLetter, captured: SentLetter | null, waitsFor: string[]]

/** Changes that set the same columns. */
export interface SentGroup {
  /** Their names, separated by commas. */
  columns: string
  due: RowChange['due']
  guard: 'epoch' | 'version'
  changes: SentChange[]
}

/** `counts` has the bit of each action to add to the totals. `values` follow the columns. */
export type SentChange = [
  id: string,
  expected: number,
  worker: string | null,
  line: string,
  counts: number,
  bytes: StoredBytes | null,
  ...values: SqlValue[],
]

export function sendLetter(letter: DeadLetter, waitsFor = letter.dependsOn): SentLetter {
  const { queue, row, body } = encodeLetter(letter)
  const { origin, originCrc, bytes, bytesCrc } = body
  const note = waitsFor && waitsFor.length > 0 ? JSON.stringify(waitsFor) : null
  row.push(queue, origin, originCrc, sendBytes(bytes), bytesCrc, note)
  return row
}

export function sendStored(stored: KeptLetter): SentStored {
  const { letter, original, waitsFor = [], replaces = null } = stored
  if (!original) return [sendLetter(letter, waitsFor), null, replaces]
  const sent = sendLetter({ ...letter, payload: original }, waitsFor)
  sent[at.edit] = JSON.stringify(factsOf(letter.payload))
  return [sent, sendBytes(letter.payload.bytes), replaces]
}

/** A view of a larger buffer is copied: otherwise all of its buffer would be sent. */
function sendBytes(bytes: Uint8Array): StoredBytes {
  if (isUtf8(bytes)) return decoder.decode(bytes)
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice()
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const encoder = new TextEncoder()

/** The groups of a batch of changes, and the index of each change in the order of the groups. */
export function sendChanges(changes: readonly Change[]): { groups: SentGroup[]; order: number[] } {
  const groups = groupChanges(changes.map(encode)).flat()
  return {
    groups: groups.map((group) => sendGroup(group)),
    order: groups.flatMap(({ changes: some }) => some.map(({ index }) => index)),
  }
}

function encode(change: Change): RowChange {
  try {
    return encodeChange(change)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `the change of letter ${change.id} cannot be stored: ${why}`
    throw new RedriveError('INVALID_INPUT', message, { cause })
  }
}

/** A letter that comes to rest is listed by the `retry_at` that it keeps, if any. */
function sendGroup({ columns: all, due, changes }: ChangeGroup): SentGroup {
  const keepsRetryAt = due === 'none' && !all.includes('retry_at')
  const set = keepsRetryAt ? all.filter((name) => name !== 'due_at' && name !== 'wait') : all
  return {
    columns: set.join(),
    due: keepsRetryAt ? 'resting' : due,
    guard: 'epoch' in changes[0]!.change.guard ? 'epoch' : 'version',
    changes: changes.map(({ change }) => sendChange(change, set)),
  }
}

function sendChange(change: RowChange, set: readonly Column[]): SentChange {
  const { id, guard, entry, counts, bytes } = change
  const isEpoch = 'epoch' in guard
  const expected = isEpoch ? guard.epoch : guard.version
  const worker = isEpoch ? (guard.worker ?? null) : null
  let mask = 0
  for (const action of counts) mask |= 1 << action
  const sent: SentChange = [id, expected, worker, entry, mask, bytes ? sendBytes(bytes) : null]
  for (const column of set) sent.push(change.set[column] ?? null)
  return sent
}

/** The moves by the code of their state. */
export function sendBulkMoves(moves: BulkMoves): [state: number, group: SentGroup][] {
  return states.flatMap((state): [number, SentGroup][] => {
    const move = moves[state]
    // A leased letter belongs to its worker.
    if (!move || state === 'retrying') return []
    const { groups } = sendChanges([{ id: '', guard: { version: 0 }, ...move }])
    return [[stateCode(state), groups[0]!]]
  })
}

/** A letter from the thread, for the decoders. */
export function receiveLetter(sent: SentLetter): LoadedLetter {
  sent[at.id] = formatId(sent[at.id] as string)
  const bytes = sent[after.bytes] as StoredBytes | null
  const loaded: LoadedLetter = {
    row: sent,
    queue: sent[after.queue] as string,
    origin: sent[after.origin] as string | null,
    originCrc: sent[after.originCrc] as number,
    bytes: typeof bytes === 'string' ? encoder.encode(bytes) : bytes,
    bytesCrc: sent[after.bytesCrc] as number,
  }
  const problem = sent[after.note]
  return typeof problem === 'string' ? { ...loaded, problem } : loaded
}

export function receiveStored([sent, captured, waitsFor]: LoadedStored): StoredLetter {
  const letter = decodeLetter(receiveLetter(sent))
  const original = captured ? decodeOriginal(receiveLetter(captured)) : undefined
  // Without the captured payload, a copy of the letter would not be complete.
  if (captured && !original && letter.corrupt === undefined)
    letter.corrupt = 'the captured payload cannot be read'
  return {
    letter,
    ...(original ? { original } : {}),
    ...(waitsFor.length > 0 ? { waitsFor } : {}),
  }
}

/** The size of the payload, if it was read. */
export function sizeOf(letter: SentLetter): number {
  return (letter[after.bytes] as StoredBytes | null)?.length ?? 0
}

/** The id of 32 hexadecimal digits. */
export function formatId(hex: string): string {
  const id = hex.toLowerCase()
  return `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`
}
