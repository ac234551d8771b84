import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import { everything } from './batches.ts'

/**
 * The progress of a copy, stored as a record of the target. It also names the source of the copy.
 */
interface CopyState {
  source: string
  startedAt: string
  /** Position of the next letters in the source. */
  cursor?: string
  /** Number of letters before `cursor`. */
  letters: number
  /**
   * Number of actions in the source when its totals were copied. More actions in the target mean
   * that the target was used.
   */
  counted: number
  /** When source and target were last verified to be the same. */
  verifiedAt?: string
}

export interface Progress {
  readonly cursor: string | undefined
  readonly letters: number
  save(changes: Partial<CopyState>): Promise<void>
}

const [kind, id] = ['copy', 'source']

/**
 * Claims the target: it must be empty, or an unused copy of this source. No other store is written
 * to.
 */
export async function beginCopy(to: Store, source: string, clock: Clock): Promise<Progress> {
  const record = await to.records.get(kind, id)
  if (!record && !(await isEmpty(to)))
    throw invalidTarget(
      'the target is not empty and not an earlier copy of this source: use an empty store',
    )
  const first: CopyState = { source, startedAt: toTimestamp(clock.now()), letters: 0, counted: 0 }
  let state = record ? readCopyState(record.value) : first
  if (state.source !== source)
    throw invalidTarget(
      `the target is a copy of ${state.source}, not of ${source}: use an empty store`,
    )
  if ((await countActions(to)) > state.counted)
    throw invalidTarget(
      'the target was used after it was copied, and its letters are not overwritten: use an empty store',
    )
  let version = record?.version ?? 0
  const save = async (changes: Partial<CopyState>): Promise<void> => {
    state = { ...state, ...changes }
    if ((await to.records.put(kind, id, state as unknown as Json, version)) === 'conflict')
      throw new RedriveError(
        'VERSION_CONFLICT',
        'another copy is writing to this target: wait until it ends, then run this copy again',
      )
    version += 1
  }
  await save({})
  return { cursor: state.cursor, letters: state.letters, save }
}

function readCopyState(value: Json): CopyState {
  const { source, counted, letters } = value as Partial<CopyState>
  if (typeof source !== 'string' || typeof counted !== 'number' || typeof letters !== 'number')
    throw invalidTarget(
      'the record of an earlier copy in the target cannot be read: use an empty store',
    )
  return value as unknown as CopyState
}

/** True if the store has no letters, no totals, and no records except those of workers. */
async function isEmpty(store: Store): Promise<boolean> {
  const kinds = await store.records.kinds()
  return (
    kinds.every((name) => name === 'worker') &&
    (await countActions(store)) === 0 &&
    (await store.tally('state', everything)).size === 0
  )
}

/** Number of all actions in a store so far. */
export async function countActions(store: Store): Promise<number> {
  return (await store.totals()).reduce((sum, { count }) => sum + count, 0)
}

function invalidTarget(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
