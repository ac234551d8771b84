import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Json } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import { everything } from './batches.ts'

/**
 * The progress of a copy, stored as a record of the target. It also names the source of the copy.
 */
interface Standing {
  source: string
  startedAt: string
  /** Where the next letters are found in the source, and how many came before. */
  cursor?: string
  letters: number
  /**
   * How much had happened in the source when its totals were taken over. More than this in the
   * target is its own doing.
   */
  counted: number
  /** When source and target were found to be the same. */
  verifiedAt?: string
}

export interface Progress {
  readonly cursor: string | undefined
  readonly letters: number
  save(news: Partial<Standing>): Promise<void>
}

const [kind, id] = ['copy', 'source']

/**
 * Claims the target: it must be empty, or an unused copy of this source. No other store is written
 * to.
 */
export async function beginCopy(to: Store, source: string, clock: Clock): Promise<Progress> {
  const found = await to.records.get(kind, id)
  if (!found && !(await isEmpty(to)))
    throw refused(
      'the target is not empty and not an earlier copy of this source: use an empty store',
    )
  const first: Standing = { source, startedAt: toTimestamp(clock.now()), letters: 0, counted: 0 }
  let standing = found ? readStanding(found.value) : first
  if (standing.source !== source)
    throw refused(
      `the target is a copy of ${standing.source}, not of ${source}: use an empty store`,
    )
  if ((await happenings(to)) > standing.counted)
    throw refused(
      'the target was used after it was copied, and its letters are not overwritten: use an empty store',
    )
  let version = found?.version ?? 0
  const save = async (news: Partial<Standing>): Promise<void> => {
    standing = { ...standing, ...news }
    if ((await to.records.put(kind, id, standing as unknown as Json, version)) === 'conflict')
      throw new RedriveError(
        'VERSION_CONFLICT',
        'another copy is writing to this target: wait until it ends, then run this copy again',
      )
    version += 1
  }
  await save({})
  return { cursor: standing.cursor, letters: standing.letters, save }
}

function readStanding(value: Json): Standing {
  const { source, counted, letters } = value as Partial<Standing>
  if (typeof source !== 'string' || typeof counted !== 'number' || typeof letters !== 'number')
    throw refused('the record of an earlier copy in the target cannot be read')
  return value as unknown as Standing
}

/** No letters, nothing that ever happened, and no records but those of workers that have gone. */
async function isEmpty(store: Store): Promise<boolean> {
  const kinds = await store.records.kinds()
  return (
    kinds.every((name) => name === 'worker') &&
    (await happenings(store)) === 0 &&
    (await store.tally('state', everything)).size === 0
  )
}

/** How much ever happened in a store. */
async function happenings(store: Store): Promise<number> {
  return (await store.totals()).reduce((sum, { count }) => sum + count, 0)
}

function refused(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
