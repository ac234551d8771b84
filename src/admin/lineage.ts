import { RedriveError } from '../errors.ts'
import { isLetterId } from '../letter/letter-id.ts'
import {
  isDone,
  states,
  type DeadLetter,
  type LetterSummary,
  type State,
} from '../letter/letter.ts'
import { originalIdOfLetter, replaysOfLetter } from '../letter/lineage.ts'
import { maxLimit, type LetterFilter } from '../letter/query.ts'
import { sourceIdOf } from '../letter/source-id.ts'
import type { Timestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'

/** One letter of a message that was replayed and died again. */
export interface LineageLetter {
  id: string
  queue: string
  state: State
  /** Replays of the message until now, including those of this letter. */
  replays: number
  deadLetteredAt: Timestamp
  settledAt?: Timestamp
  /** Name and message of the last failure. */
  failure: string
}

/**
 * The letters of one original message, the oldest first: each but the first is a replay that died.
 * A letter that was never replayed is alone.
 */
export async function findLineage(store: Store, id: string): Promise<LineageLetter[]> {
  const [letter] = await store.get([id])
  if (!letter) throw new RedriveError('LETTER_NOT_FOUND', `there is no letter ${id}: check the id`)
  const original = originalIdOfLetter(letter)
  const found = new Map<string, LetterSummary>([[id, letter]])
  const add = (letters: readonly LetterSummary[]): void => {
    for (const one of letters) found.set(one.id, one)
  }
  if (isLetterId(original)) add(await store.get([original]))
  add(await findBySource(store, letter))
  if (wasReplayed(letter)) {
    const since = [...found.values()].map((one) => one.deadLetteredAt).sort()[0]!
    add(await findAll(store, { metadata: { originalId: original }, since }))
  }
  return [...found.values()]
    .sort((one, other) => (isEarlier(one, other) ? -1 : 1))
    .map(toLineageLetter)
}

/** The oldest later letter with the same id in the source. */
export async function findNewerBySource(
  store: Store,
  letter: DeadLetter,
): Promise<LetterSummary | undefined> {
  return (await findBySource(store, letter))
    .filter((other) => other.id !== letter.id && isEarlier(letter, other))
    .sort((one, other) => (isEarlier(one, other) ? -1 : 1))[0]
}

async function findBySource(store: Store, letter: DeadLetter): Promise<LetterSummary[]> {
  const sourceId = sourceKeyOf(letter, originalIdOfLetter(letter))
  return (await findAll(store, { sourceId })).filter(isRelated(letter))
}

/** The records of a stream keep its id when they are replayed. */
function sourceKeyOf(letter: DeadLetter, original: string): string {
  return letter.source.kind === 'pipeline' ? (sourceIdOf(letter) ?? original) : original
}

/** Archived letters as well. */
async function findAll(store: Store, filter: LetterFilter): Promise<LetterSummary[]> {
  return (await store.find({ ...filter, state: [...states], limit: maxLimit })).items
}

/**
 * Whether a letter with the source id of the message is part of its lineage. Senders may use the
 * same id in several mailboxes or nodes. A replay may have come from another mailbox.
 */
function isRelated(letter: DeadLetter): (other: LetterSummary) => boolean {
  const { source } = letter
  const isReplay = originalIdOfLetter(letter) !== sourceIdOf(letter)
  return ({ source: other }) => {
    if (source.kind === 'pipeline' && other.kind === 'pipeline')
      return other.cluster === source.cluster && other.node === source.node
    if (source.kind !== 'mailbox' || other.kind !== 'mailbox') return false
    return isReplay || other.mailbox === source.mailbox
  }
}

/** A handler that returns letters to their source resolves them without counting a replay. */
function wasReplayed(letter: DeadLetter): boolean {
  return replaysOfLetter(letter) > 0 || isDone(letter)
}

type Dated = Omit<LetterSummary, 'payload'>

function isEarlier(one: Dated, other: Dated): boolean {
  if (one.deadLetteredAt !== other.deadLetteredAt) return one.deadLetteredAt < other.deadLetteredAt
  const [replays, otherReplays] = [replaysOfLetter(one), replaysOfLetter(other)]
  return replays === otherReplays ? one.id < other.id : replays < otherReplays
}

function toLineageLetter(letter: LetterSummary): LineageLetter {
  const { id, queue, state, deadLetteredAt, settledAt, failure } = letter
  return {
    id,
    queue,
    state,
    replays: replaysOfLetter(letter),
    deadLetteredAt,
    ...(settledAt === undefined ? {} : { settledAt }),
    failure: `${failure.name}: ${failure.message}`.slice(0, 200).toWellFormed(),
  }
}
