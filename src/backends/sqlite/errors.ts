import { RedriveError, type ErrorCode } from '../../errors.ts'
import { nodeAdvice } from './node-version.ts'

/** How errors of a store or mailbox are reported. */
export interface Tenant {
  noun: 'store' | 'mailbox'
  unavailable: 'STORE_UNAVAILABLE' | 'MAILBOX_UNAVAILABLE'
  /** Message for a file that stayed busy: the cause and the fix. */
  whenBusy: string
}

/** An error as it is sent between threads. */
export interface ThreadError {
  code: ErrorCode
  message: string
}

/** Primary result codes of SQLite that are handled. */
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

/** The primary result code of a SQLite error. Undefined: another error. */
function codeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

const advice: Record<number, string> = {
  [codes.perm]: 'this process may not use the file: check its owner and mode',
  [codes.locked]: 'a table is locked: try again',
  [codes.noMemory]: 'out of memory',
  [codes.readOnly]:
    'the file, its directory or its disk is read-only: make it writable for this process',
  [codes.ioError]: 'the disk reported an error: see the system log',
  [codes.corrupt]:
    'the file is damaged: stop writing to it, copy it, and recover what is readable with `sqlite3 FILE .recover`',
  [codes.full]: 'the disk is full: free some space; stored data is intact',
  [codes.cannotOpen]:
    'the file cannot be opened: check that its directory exists and may be written to',
  [codes.tooBig]: 'a value is larger than 1 GB, the limit of SQLite',
  [codes.notADatabase]:
    'the file is not a SQLite database and was not changed: choose another path',
}

const mayNot = 'this process may not use the file or its folder: check their owner and mode'
const tooMany = 'too many files are open: close some, or raise the limit of open files'

/** Advice for errors of the operating system. */
const systemAdvice: Readonly<Record<string, string>> = {
  ENOENT: 'the folder of the file does not exist: create it, or correct the path',
  ENOTDIR: 'a part of the path is not a folder: correct the path',
  EISDIR: 'the path is a folder: give the path of a file',
  ENAMETOOLONG: 'the path is too long: choose a shorter one',
  EACCES: mayNot,
  EPERM: mayNot,
  EROFS: advice[codes.readOnly]!,
  ENOSPC: advice[codes.full]!,
  EDQUOT: advice[codes.full]!,
  EMFILE: tooMany,
  ENFILE: tooMany,
}

/** Errors that are not outages: retrying does not help. */
const others: Record<number, ErrorCode> = {
  [codes.tooBig]: 'TOO_LARGE',
  [codes.notADatabase]: 'STORE_UNSAFE',
}

/** A commit could not be flushed to disk. */
export class FlushFailed extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/**
 * Converts an error of the thread. The only place that knows the codes of SQLite.
 */
export function toRedriveError(error: unknown, path: string, tenant: Tenant): ThreadError {
  if (error instanceof RedriveError) return { code: error.code, message: error.message }
  const message = error instanceof Error ? error.message : String(error)
  return {
    code: others[codeOf(error) ?? -1] ?? tenant.unavailable,
    message: `sqlite ${path}: ${meaningOf(error, tenant)} (${message})`,
  }
}

/** Errors that last until somebody corrects the path or the permissions. */
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
 * Converts an error of opening the file: an unusable path is INVALID_CONFIG, not an outage.
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
    return 'the disk did not accept the write, which may or may not be stored: see the system log'
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
    return `sqlite: a file of Redrive is missing (${message}): reinstall Redrive, and exclude it from bundles`
  return undefined
}

/** Whether every call of a batch would fail alike, or may be done: running each alone is no use. */
export function affectsAll(error: unknown): boolean {
  return isBusy(error) || breaksConnection(error)
}

export const isBusy = (error: unknown): boolean => codeOf(error) === codes.busy
export const isFull = (error: unknown): boolean => codeOf(error) === codes.full
/** An unreadable page or record. */
export const isCorrupt = (error: unknown): boolean => codeOf(error) === codes.corrupt

/**
 * Whether the connection must be reopened. After a failed fsync the kernel may have dropped the
 * pages, and a second fsync would report success: only reading the file again shows what is on
 * disk.
 */
export const breaksConnection = (error: unknown): boolean =>
  error instanceof FlushFailed ||
  codeOf(error) === codes.ioError ||
  codeOf(error) === codes.cannotOpen
