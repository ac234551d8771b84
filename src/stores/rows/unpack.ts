import { crc32 } from 'node:zlib'
import type {
  DeadLetter,
  HistoryEntry,
  LetterSummary,
  Payload,
  Reason,
} from '../../letter/letter.ts'
import { categories, policies, priorities, states } from './codes.ts'
import type { Origin, Rest } from './pack.ts'
import type { LoadedLetter } from './form.ts'
import { rowOf, seal, type Row } from './row.ts'

/**
 * The whole letter. One that cannot be read comes back with `corrupt` and with what could be read.
 */
export function unpack(loaded: LoadedLetter): DeadLetter {
  const { row, origin, rest, faults } = parts(loaded)
  const [, queue, , , bytes, bytesCrc, history] = loaded
  if (bytes === null) faults.push('the payload cannot be read')
  else if (crc32(bytes) !== bytesCrc) faults.push('the payload does not match its checksum')
  const facts = rest.payload ?? origin.payload
  const payload = { bytes: bytes ?? new Uint8Array(0), ...facts }
  const entries = entriesOf(origin, history, faults)
  return { ...fieldsOf(row, queue, origin, rest), payload, history: entries, ...corruption(faults) }
}

/** The letter as lists show it. */
export function unpackSummary(loaded: LoadedLetter): LetterSummary {
  const { row, origin, rest, faults } = parts(loaded)
  const payload = rest.payload ?? origin.payload
  return { ...fieldsOf(row, loaded[1], origin, rest), payload, ...corruption(faults) }
}

/** The payload as it was captured, undefined when it can no longer be read. */
export function unpackOriginal(loaded: LoadedLetter): Payload | undefined {
  const bytes = loaded[4]
  return bytes ? { bytes, ...parts(loaded).origin.payload } : undefined
}

function corruption(faults: string[]): { corrupt?: string } {
  return faults.length > 0 ? { corrupt: faults.join('; ') } : {}
}

interface Parts {
  row: Row
  origin: Origin
  rest: Rest
  faults: string[]
}

/**
 * Decodes and verifies the parts that summaries need. Collects faults, and substitutes defaults for
 * broken parts.
 */
function parts([values, , origin, originCrc, , , , problem]: LoadedLetter): Parts {
  const row = rowOf(values)
  const faults: string[] = problem === null ? [] : [problem]
  if (seal(row) !== row.crc) faults.push('the row does not match its checksum')
  if (origin !== null && crc32(origin) !== originCrc)
    faults.push('the origin does not match its checksum')
  const captured = parsed<Origin>(origin, 'origin', faults)
  const changing = parsed<Rest>(row.rest, 'row', faults)
  if (captured && changing && faults.length === 0)
    return { row, origin: captured, rest: changing, faults }
  return {
    row,
    origin: { ...noOrigin(row), ...captured },
    rest: { ...noRest(row), ...changing },
    faults,
  }
}

function parsed<T extends object>(
  text: string | null,
  what: string,
  faults: string[],
): T | undefined {
  if (text === null) return undefined
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as T
  } catch {
    // Told below, like any other text that is not an object.
  }
  faults.push(`the ${what} is not readable as JSON`)
  return undefined
}

function fieldsOf(
  row: Row,
  queue: string,
  origin: Origin,
  rest: Rest,
): Omit<DeadLetter, 'payload' | 'history'> {
  const { payload: _, entry: __, ...captured } = origin
  const { payload: ___, ...changing } = rest
  return {
    failure: origin.firstFailure,
    ...captured,
    ...changing,
    id: row.id,
    version: row.version,
    epoch: row.epoch,
    queue,
    category: categories[row.category] ?? 'unknown',
    fingerprint: row.fingerprint,
    priority: priorities[row.priority] ?? 'medium',
    retries: row.retries,
    backoffMs: row.backoffMs,
    state: states[row.state] ?? 'parked',
    deadLetteredAt: row.deadLetteredAt,
    updatedAt: row.updatedAt,
    historyOmitted: row.omitted,
    ...(row.reason === null ? {} : { reason: row.reason as Reason }),
    ...(row.retryAt === null ? {} : { retryAt: row.retryAt }),
    ...(row.settledAt === null ? {} : { settledAt: row.settledAt }),
    ...(row.expiresAt === null ? {} : { expiresAt: row.expiresAt }),
    ...(row.worker === null || row.leasedUntil === null
      ? {}
      : { lease: { worker: row.worker, epoch: row.epoch, expiresAt: row.leasedUntil } }),
  }
}

function entriesOf(origin: Origin, later: string[], faults: string[]): HistoryEntry[] {
  const entries: HistoryEntry[] = origin.entry ? [origin.entry] : []
  for (const text of later) {
    const entry = parsed<HistoryEntry>(text, 'history', faults)
    if (entry) entries.push(entry)
  }
  return entries
}

/** What stands in for an origin that cannot be read. */
function noOrigin(row: Row): Origin {
  const at = row.deadLetteredAt
  return {
    source: { kind: 'operation', type: 'unreadable' },
    payload: { contentType: 'application/octet-stream', size: 0, version: 1 },
    firstFailure: {
      name: 'Unreadable',
      message: 'what failed can no longer be read',
      causes: [],
      at,
    },
    attempts: 0,
    failedAt: at,
  }
}

function noRest(row: Row): Rest {
  return {
    occurrences: 1,
    metadata: {},
    tags: [],
    severity: 'medium',
    recoverability: 'unknown',
    policy: policies[row.policy] === 'immediate' ? { kind: 'immediate' } : { kind: 'never' },
    maxRetries: 0,
    replays: 0,
  }
}
