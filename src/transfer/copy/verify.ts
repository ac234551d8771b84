import { createHash } from 'node:crypto'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Store, StoredLetter, Total } from '../../store.ts'
import { addTo, emptyListing, type Listing } from '../listing.ts'
import { everything, readIdPages } from './batches.ts'
import { digestOf } from './digest.ts'
import { compareRecords } from './records.ts'

/** Something that is not the same on both sides. */
interface Difference {
  kind: 'letter' | 'record' | 'count' | 'total'
  /** The id of the letter, or what was counted. */
  name: string
  why: string
}

export interface Verdict {
  /** Letters and records that are the same on both sides. */
  letters: number
  records: number
  states: Record<string, number>
  /** Over the letters of each side, in the order of their ids. The same if all letters are. */
  hash: { from: string; to: string }
  differences: Listing<Difference>
  /**
   * Letters that cannot be read in the source, and are not in the target as letters of the same
   * version.
   */
  damaged: Listing<{ id: string; why: string }>
}

interface Comparison {
  from: Store
  to: Store
  /**
   * Copies letters that are missing or older in the target. Of damaged letters it stores the
   * readable part.
   */
  copyStale?: ((letters: StoredLetter[]) => Promise<void>) | undefined
  /** Called with the number of compared letters. Returns false to stop the comparison. */
  onCompared: (letters: number) => boolean
}

/** Compares all data of two stores. Undefined if the comparison was stopped. */
export async function compareStores(comparison: Comparison): Promise<Verdict | undefined> {
  const { from, to } = comparison
  const differences = emptyListing<Difference>()
  const differs = (kind: Difference['kind']) => (name: string, why: string) =>
    addTo(differences, { kind, name, why })
  const letters = await compareLetters(comparison, differs('letter'))
  if (!letters) return undefined
  const { missing, ...rest } = letters
  const states = await compareCounts(from, to, missing, differs('count'))
  if (differences.count > 0) await findExtraLetters(from, to, differs('letter'))
  const records = await compareRecords(from, to, differs('record'))
  compareTotals(await from.totals(), await to.totals(), differs('total'))
  return { ...rest, records, states, differences }
}

type Differs = (name: string, why: string) => void

/**
 * State and queue of letters that are damaged in the source and missing in the target.
 */
type Missing = Pick<DeadLetter, 'state' | 'queue'>[]

async function compareLetters(
  { from, to, copyStale, onCompared }: Comparison,
  differs: Differs,
): Promise<(Pick<Verdict, 'letters' | 'hash' | 'damaged'> & { missing: Missing }) | undefined> {
  const damaged: Verdict['damaged'] = emptyListing()
  const missing: Missing = []
  const [fromHash, toHash] = [createHash('sha256'), createHash('sha256')]
  let same = 0
  for await (const { batches } of readIdPages(from))
    for (const ids of batches) {
      const [ours, found] = await Promise.all([from.stored(ids), to.stored(ids)])
      let theirs = byId(found)
      const stale = ours.filter(({ letter }) => {
        const other = theirs.get(letter.id)?.letter
        return letter.corrupt === undefined
          ? isStale(letter, other)
          : isMissingVersion(letter, other)
      })
      if (stale.length > 0 && copyStale) {
        await copyStale(stale)
        theirs = byId(await to.stored(ids))
      }
      for (const one of ours) {
        const { letter } = one
        const other = theirs.get(letter.id)
        if (letter.corrupt !== undefined) {
          if (isMissingVersion(letter, other?.letter))
            addTo(damaged, { id: letter.id, why: letter.corrupt })
          if (!other) missing.push({ state: letter.state, queue: letter.queue })
          continue
        }
        const digest = digestOf(one)
        const otherDigest = other ? digestOf(other) : ''
        fromHash.update(digest)
        toHash.update(otherDigest)
        if (digest === otherDigest) same += 1
        else differs(letter.id, describeDifference(letter, other?.letter))
      }
      if (!onCompared(ids.length)) return undefined
    }
  const hash = { from: fromHash.digest('hex'), to: toHash.digest('hex') }
  return { letters: same, hash, damaged, missing }
}

function byId(letters: readonly StoredLetter[]): Map<string, StoredLetter> {
  return new Map(letters.map((one) => [one.letter.id, one]))
}

function isStale(ours: DeadLetter, theirs: DeadLetter | undefined): boolean {
  return !theirs || theirs.version < ours.version
}

/** True unless the target has the same version of a damaged letter from an earlier copy. */
function isMissingVersion(ours: DeadLetter, theirs: DeadLetter | undefined): boolean {
  return theirs?.version !== ours.version
}

function describeDifference(ours: DeadLetter, theirs: DeadLetter | undefined): string {
  if (!theirs) return 'missing in the target'
  if (theirs.corrupt !== undefined) return `cannot be read in the target: ${theirs.corrupt}`
  if (theirs.version < ours.version) return 'older in the target'
  if (theirs.version > ours.version) return 'newer in the target'
  return 'not the same in the target'
}

/** Compares counts by state and by queue. Returns the counts of the target by state. */
async function compareCounts(
  from: Store,
  to: Store,
  missing: Missing,
  differs: Differs,
): Promise<Record<string, number>> {
  let states: Map<string, number> = new Map()
  for (const key of ['queue', 'state'] as const) {
    const ours = await from.tally(key, everything)
    for (const { [key]: name } of missing) ours.set(name, (ours.get(name) ?? 0) - 1)
    states = await to.tally(key, everything)
    for (const name of new Set([...ours.keys(), ...states.keys()])) {
      const [here, there] = [ours.get(name) ?? 0, states.get(name) ?? 0]
      if (here !== there) differs(`${key} ${name}`, `${here} in the source, ${there} in the target`)
    }
  }
  return Object.fromEntries(states)
}

/** Letters that only the target has. */
async function findExtraLetters(from: Store, to: Store, differs: Differs): Promise<void> {
  for await (const { batches } of readIdPages(to))
    for (const ids of batches) {
      const known = await from.find({ ...everything, ids, limit: ids.length })
      const there = new Set(known.items.map(({ id }) => id))
      for (const id of ids) if (!there.has(id)) differs(id, 'only in the target')
    }
}

function compareTotals(ours: readonly Total[], theirs: readonly Total[], differs: Differs): void {
  const indexTotals = (totals: readonly Total[]): Map<string, string> =>
    new Map(
      totals.map(({ action, queue, priority, count, retries, maxRetries, backoffMs }) => [
        `${action} ${priority} ${queue}`,
        JSON.stringify([count, retries, maxRetries, backoffMs]),
      ]),
    )
  const [here, there] = [indexTotals(ours), indexTotals(theirs)]
  for (const name of new Set([...here.keys(), ...there.keys()]))
    if (here.get(name) !== there.get(name))
      differs(
        name,
        `${here.get(name) ?? 'none'} in the source, ${there.get(name) ?? 'none'} in the target`,
      )
}
