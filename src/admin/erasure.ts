import type { Subjects } from '../capture/subjects.ts'
import { checkKeys, describeValue } from '../check/keys.ts'
import { checkBy, checkReason } from '../check/text.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { subjectKind } from '../letter/content.ts'
import { states, type DeadLetter, type Failure, type Payload } from '../letter/letter.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { KeptLetter, Store, StoredLetter } from '../store.ts'
import type { AuditLog } from './audit/audit-log.ts'
import { removeEdits } from './edits.ts'

export interface EraseOptions {
  by: string
  /** Why. It is stored in the audit log, so it must not name the subject. */
  reason: string
}

export interface Erasure {
  /** The keyed hash of the subject, as in letters and in the audit log. */
  subject: string
  /** Letters whose content was erased. */
  letters: number
  /** Letters that a worker runs now, or that changed meanwhile. Erase the subject again. */
  skipped: number
}

export interface ErasureContext {
  store: Store
  clock: Clock
  audit: AuditLog
  subjects: Subjects
}

/** Erasures that have begun. One that was interrupted is still there when it is called again. */
const kind = 'erasure'
const pageSize = 500

/**
 * Destroys the key of a data subject, and overwrites the content of its letters. May be interrupted
 * at any time, and called again.
 */
export async function eraseSubject(
  context: ErasureContext,
  subject: string,
  options: EraseOptions,
): Promise<Erasure> {
  checkKeys('erase options', options, ['by', 'reason'])
  if (typeof subject !== 'string' || subject === '')
    throw new RedriveError(
      'INVALID_INPUT',
      `\`subject\` must be a string that is not empty, got ${describeValue(subject)}`,
    )
  const actor = checkBy(options.by)
  checkReason(options.reason)
  const { store, audit, subjects } = context
  const hash = await subjects.hashOf(subject)
  const what = { kind: 'subject', id: hash } as const
  return audit.act({ action: 'erase', what, actor, reason: options.reason }, async (describe) => {
    const { records } = store
    const isKnown =
      (await records.get(kind, hash)) !== undefined ||
      (await records.get(subjectKind, hash)) !== undefined
    if (isKnown) await records.put(kind, hash, { by: actor })
    // From here on, nobody can decrypt the letters, nor copies of them.
    await records.remove(subjectKind, hash)
    const { letters, skipped } = await eraseLetters(context, hash, actor)
    if (!isKnown && letters + skipped === 0)
      throw new RedriveError(
        'SUBJECT_NOT_FOUND',
        'no letter is about this subject: check its spelling, and the option subject',
      )
    if (skipped === 0) await records.remove(kind, hash)
    describe({ after: { letters, skipped } })
    return { subject: hash, letters, skipped }
  })
}

async function eraseLetters(
  { store, clock }: ErasureContext,
  subject: string,
  actor: string,
): Promise<Omit<Erasure, 'subject'>> {
  const total = { letters: 0, skipped: 0 }
  for (let cursor: string | undefined; ;) {
    const from = cursor === undefined ? {} : { cursor }
    const page = await store.find({
      order: 'oldest',
      limit: pageSize,
      state: [...states],
      ...from,
    })
    const ids = page.items.filter(({ payload }) => payload.subject === subject).map(({ id }) => id)
    for (const stored of ids.length > 0 ? await store.stored(ids) : []) {
      const isErased = await eraseLetter(store, stored, actor, toTimestamp(clock.now()))
      total[isErased ? 'letters' : 'skipped'] += 1
    }
    if (page.cursor === undefined) return total
    cursor = page.cursor
  }
}

async function eraseLetter(
  store: Store,
  stored: StoredLetter,
  actor: string,
  at: Timestamp,
): Promise<boolean> {
  const { id, state } = stored.letter
  // Before the letter: once it is erased, it is not found again.
  await removeEdits(store, id)
  if (state === 'retrying') return false
  const [result] = await store.keep([withoutContent(stored, actor, at)])
  return result === 'written'
}

/** The letter with everything that comes from its payload, its errors and people overwritten. */
function withoutContent(stored: StoredLetter, actor: string, at: Timestamp): KeptLetter {
  const { letter, original } = stored
  const { corrupt: _, headers: __, dedupeKey: ___, lane: ____, ...rest } = letter
  const { task: _____, github: ______, review, ...kept } = rest
  const isSettled = letter.state === 'resolved' || letter.state === 'archived'
  const { retryAt: _______, ...waiting } = kept
  const to = isSettled ? letter.state : 'parked'
  return {
    ...stored,
    letter: {
      ...(isSettled ? kept : { ...waiting, state: to, reason: 'erased', settledAt: at }),
      ...(review ? { review: withoutNote(review) } : {}),
      version: letter.version + 1,
      updatedAt: at,
      source: withoutContext(letter.source),
      payload: erasedPayload(letter.payload, at),
      metadata: {},
      tags: [],
      failure: erasedFailure(letter.failure),
      firstFailure: erasedFailure(letter.firstFailure),
      history: [
        ...letter.history.map(({ note: _note, failure: _failure, ...entry }) => entry),
        {
          at,
          actor,
          action: isSettled ? 'note' : 'park',
          from: letter.state,
          to,
          note: 'content erased',
        },
      ],
    },
    ...(original ? { original: erasedPayload(original, at) } : {}),
    replaces: letter.version,
  }
}

function erasedPayload({ contentType, version }: Payload, at: Timestamp): Payload {
  return { bytes: new Uint8Array(), contentType, size: 0, version, erased: at }
}

function erasedFailure({ name, at }: Failure): Failure {
  return { name, message: '', causes: [], at }
}

function withoutNote(review: NonNullable<DeadLetter['review']>): typeof review {
  const { note: _, ...rest } = review
  return rest
}

function withoutContext(source: DeadLetter['source']): DeadLetter['source'] {
  if (source.kind !== 'operation' && source.kind !== 'workflow') return source
  const { context: _, ...rest } = source
  return rest
}
