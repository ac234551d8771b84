import { RedriveError, type ErrorCode } from '../../errors.ts'
import { nodeAdvice } from './node-version.ts'

/** Who keeps the file: what its failures are called, and the words they are told in. */
export interface Tenant {
  noun: 'store' | 'mailbox'
  unavailable: 'STORE_UNAVAILABLE' | 'MAILBOX_UNAVAILABLE'
  /** What it means that the file stayed busy, and what to do. */
  whenBusy: string
}

/** An error as it is sent between threads. */
export interface ThreadError {
  code: ErrorCode
  message: string
}

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

const advice: Record<number, string> = {
  [codes.perm]: 'this process may not use the file: check its owner and mode',
  [codes.locked]: 'a table is locked: try again',
  [codes.noMemory]: 'there was no memory left',
  [codes.readOnly]:
    'the file, its directory or its disk is read-only: make it writable for this process',
  [codes.ioError]: 'the disk did not do as it was told: look at the system log',
  [codes.corrupt]:
    'the file is damaged: stop writing to it, copy it, and recover what is readable with `sqlite3 FILE .recover`',
  [codes.full]: 'the disk is full: free some space; all that was kept is still there',
  [codes.cannotOpen]:
    'the file cannot be opened: check that its directory exists and may be written to',
  [codes.tooBig]: 'SQLite takes at most a gigabyte in one value',
  [codes.notADatabase]:
    'the file is not a SQLite database; it was left as it is: choose another path',
}

const mayNot = 'this process may not use the file or its folder: check their owner and mode'
const tooMany = 'too many files are open: close some, or raise the limit of open files'

/** What the system itself says when the file is looked for, before SQLite is asked. */
const systemAdvice: Readonly<Record<string, string>> = {
  ENOENT: 'the folder of the file is not there: make it, or correct the path',
  ENOTDIR: 'a part of the path is no folder: correct it',
  EISDIR: 'a folder is in place of the file: name a file in it',
  ENAMETOOLONG: 'the path is too long: choose a shorter one',
  EACCES: mayNot,
  EPERM: mayNot,
  EROFS: advice[codes.readOnly]!,
  ENOSPC: advice[codes.full]!,
  EDQUOT: advice[codes.full]!,
  EMFILE: tooMany,
  ENFILE: tooMany,
}

/** What is not a matter of being unavailable: trying again is of no use. */
const others: Record<number, ErrorCode> = {
  [codes.tooBig]: 'TOO_LARGE',
  [codes.notADatabase]: 'STORE_UNSAFE',
}

/** What was committed could not be put on disk. */
export class FlushFailed extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/**
 * Turns whatever was thrown in the thread into an error of ours. The one place that knows SQLite's
 * codes.
 */
export function toRedriveError(error: unknown, path: string, tenant: Tenant): ThreadError {
  if (error instanceof RedriveError) return { code: error.code, message: error.message }
  const message = error instanceof Error ? error.message : String(error)
  return {
    code: others[codeOf(error) ?? -1] ?? tenant.unavailable,
    message: `sqlite ${path}: ${meaningOf(error, tenant)} (${message})`,
  }
}

/** What stays until somebody corrects the path or the rights. */
const mistakes: readonly unknown[] = [
  codes.perm,
  codes.readOnly,
  codes.cannotOpen,
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'ENAMETOOLONG',
  'EACCES',
  'EPERM',
  'EROFS',
]

/**
 * The same for an open that failed: a path that cannot be is a wrong configuration, and no outage.
 */
export function toOpenError(error: unknown, path: string, tenant: Tenant): ThreadError {
  const described = toRedriveError(error, path, tenant)
  const found = codeOf(error) ?? (error as { code?: unknown }).code
  return described.code === tenant.unavailable && mistakes.includes(found)
    ? { ...described, code: 'INVALID_CONFIG' }
    : described
}

function meaningOf(error: unknown, { noun, whenBusy }: Tenant): string {
  if (isBusy(error)) return whenBusy
  if (error instanceof FlushFailed)
    return 'the disk did not take what was written, which may or may not be kept: look at the system log'
  return advice[codeOf(error) ?? -1] ?? systemAdviceOn(error) ?? `the ${noun} failed`
}

function systemAdviceOn(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && Object.hasOwn(systemAdvice, code)
    ? systemAdvice[code]
    : undefined
}

/** Why a thread could not start, and what to do. Undefined: it died after it had started. */
export function explainStartFailure(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return undefined
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'ERR_UNKNOWN_BUILTIN_MODULE')
    return `sqlite: Node ${process.versions.node} has no SQLite: ${nodeAdvice}`
  if (code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND')
    return `sqlite: a file of Redrive is missing (${message}): install it anew, and where code is bundled leave Redrive out of the bundle`
  return undefined
}

/** Whether every call of a batch would fail alike, or may be done: running each alone is no use. */
export function affectsAll(error: unknown): boolean {
  return isBusy(error) || breaksConnection(error)
}

export const isBusy = (error: unknown): boolean => codeOf(error) === codes.busy
export const isFull = (error: unknown): boolean => codeOf(error) === codes.full
/** A page or a record that cannot be made sense of. */
export const isCorrupt = (error: unknown): boolean => codeOf(error) === codes.corrupt

/**
 * Whether the connection can no longer be trusted. After a failed fsync the kernel may have dropped
 * what was to be written, and a second fsync would claim success: nothing but a fresh look at the
 * file tells what is on disk.
 */
export const breaksConnection = (error: unknown): boolean =>
  error instanceof FlushFailed ||
  codeOf(error) === codes.ioError ||
  codeOf(error) === codes.cannotOpen
