import { RedriveError, type ErrorCode } from '../../errors.ts'
import type { Trouble } from './protocol.ts'

/** SQLite's primary result codes that mean something to us. */
const codes = {
  perm: 3,
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  tooBig: 18,
  notADatabase: 26,
} as const

/** The primary result code of an error of SQLite, undefined for any other error. */
function codeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

const advice: Record<number, [code: ErrorCode, advice: string]> = {
  [codes.perm]: [
    'STORE_UNAVAILABLE',
    'this process may not use the file: check its owner and mode',
  ],
  [codes.busy]: [
    'STORE_UNAVAILABLE',
    'another process held the write lock for longer than busyTimeoutMs: try again, or raise it',
  ],
  [codes.locked]: ['STORE_UNAVAILABLE', 'a table is locked: try again'],
  [codes.noMemory]: ['STORE_UNAVAILABLE', 'there was no memory left'],
  [codes.readOnly]: [
    'STORE_UNAVAILABLE',
    'the file, its directory or its disk is read-only: make it writable for this process',
  ],
  [codes.ioError]: [
    'STORE_UNAVAILABLE',
    'the disk did not do as it was told: look at the system log',
  ],
  [codes.corrupt]: [
    'STORE_UNAVAILABLE',
    'the file is damaged: stop writing to it, copy it, and recover what is readable with `sqlite3 FILE .recover`',
  ],
  [codes.full]: [
    'STORE_UNAVAILABLE',
    'the disk is full: free some space; all that was kept is still there',
  ],
  [codes.cannotOpen]: [
    'STORE_UNAVAILABLE',
    'the file cannot be opened: check that its directory exists and may be written to',
  ],
  [codes.tooBig]: ['TOO_LARGE', 'SQLite takes at most a gigabyte in one value'],
  [codes.notADatabase]: [
    'STORE_UNSAFE',
    'the file is not a SQLite database; it was left as it is: choose another path',
  ],
}

/** Turns whatever was thrown in the thread into an error of ours. The one place that knows SQLite's codes. */
export function troubleOf(error: unknown, path: string): Trouble {
  if (error instanceof RedriveError) return { code: error.code, message: error.message }
  const message = error instanceof Error ? error.message : String(error)
  const [code, what] = advice[codeOf(error) ?? -1] ?? ['STORE_UNAVAILABLE', 'the store failed']
  return { code, message: `sqlite ${path}: ${what} (${message})` }
}

/** Whether every call would meet the same, so that trying them one by one is of no use. */
export function concernsAll(error: unknown): boolean {
  const code = codeOf(error)
  return code === codes.busy || code === codes.ioError || code === codes.cannotOpen
}

export const isBusy = (error: unknown): boolean => codeOf(error) === codes.busy
export const isFull = (error: unknown): boolean => codeOf(error) === codes.full
/** A page or a record that cannot be made sense of. */
export const isCorrupt = (error: unknown): boolean => codeOf(error) === codes.corrupt

/**
 * Whether the connection can no longer be trusted. After a failed fsync the kernel may have dropped what was to be
 * written, and a second fsync would claim success: nothing but a fresh look at the file tells what is on disk.
 */
export const breaksConnection = (error: unknown): boolean =>
  codeOf(error) === codes.ioError || codeOf(error) === codes.cannotOpen
