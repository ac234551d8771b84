import { createHash } from 'node:crypto'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Store, StoredLetter, Total } from '../../store.ts'
import { everything, idPages } from './batches.ts'
import { digestOf } from './digest.ts'
import { compareRecords } from './records.ts'

/** Something that is not the same on both sides. */
interface Difference {
  kind: 'letter' | 'record' | 'count' | 'total'
  /** The id of the letter, or what was counted. */
  name: string
  why: string
}

/** The first of many, and how many they are. */
interface Some<T> {
  first: T[]
  count: number
}

const maxTold = 20

const some = <T>(): Some<T> => ({ first: [], count: 0 })

function tell<T>(all: Some<T>, one: T): void {
  if (all.first.length < maxTold) all.first.push(one)
  all.count += 1
}

export interface Verdict {
  /** Letters and records that are the same on both sides. */
  letters: number
  records: number
  states: Record<string, number>
  /** Over the letters of each side, in the order of their ids. The same if all letters are. */
  hash: { from: string; to: string }
  differences: Some<Difference>
  /**
   * Letters that cannot be read in the source, and are not in the target as letters of the same
   * version.
   */
  damaged: Some<{ id: string; why: string }>
}

interface Comparison {
  from: Store
  to: Store
  /**
   * Called with letters that the target lacks or has in an older version; after it, it has them, or
   * what can be read of them.
   */
  bring?: ((letters: StoredLetter[]) => Promise<void>) | undefined
  /** Told the letters looked at; stops the comparison with false. */
  proceed: (letters: number) => boolean
}

/** Holds everything in one store against the other. Undefined when it was stopped. */
export async function compareStores(comparison: Comparison): Promise<Verdict | undefined> {
  const { from, to } = comparison
  const differences = some<Difference>()
  const differs = (kind: Difference['kind']) => (name: string, why: string) =>
    tell(differences, { kind, name, why })
  const letters = await compareLetters(comparison, differs('letter'))
  if (!letters) return undefined
  const { missing, ...rest } = letters
  const states = await compareCounts(from, to, missing, differs('count'))
  if (differences.count > 0) await findStrangers(from, to, differs('letter'))
  const records = await compareRecords(from, to, differs('record'))
  compareTotals(await from.totals(), await to.totals(), differs('total'))
  return { ...rest, records, states, differences }
}

type Differs = (name: string, why: string) => void

/**
 * Letters that are damaged in the source and missing in the target, by what they are counted under.
 */
type Missing = Pick<DeadLetter, 'state' | 'queue'>[]

async function compareLetters(
  { from, to, bring, proceed }: Comparison,
  differs: Differs,
): Promise<(Pick<Verdict, 'letters' | 'hash' | 'damaged'> & { missing: Missing }) | undefined> {
  const damaged: Verdict['damaged'] = some()
  const missing: Missing = []
  const [fromHash, toHash] = [createHash('sha256'), createHash('sha256')]
  let same = 0
  for await (const { batches } of idPages(from))
    for (const ids of batches) {
      const [ours, found] = await Promise.all([from.stored(ids), to.stored(ids)])
      let theirs = byId(found)
      const stale = ours.filter(({ letter }) => {
        const other = theirs.get(letter.id)?.letter
        return letter.corrupt === undefined ? isStale(letter, other) : isLost(letter, other)
      })
      if (stale.length > 0 && bring) {
        await bring(stale)
        theirs = byId(await to.stored(ids))
      }
      for (const one of ours) {
        const { letter } = one
        const other = theirs.get(letter.id)
        if (letter.corrupt !== undefined) {
          if (isLost(letter, other?.letter)) tell(damaged, { id: letter.id, why: letter.corrupt })
          if (!other) missing.push({ state: letter.state, queue: letter.queue })
          continue
        }
        const digest = digestOf(one)
        const otherDigest = other ? digestOf(other) : ''
        fromHash.update(digest)
        toHash.update(otherDigest)
        if (digest === otherDigest) same += 1
        else differs(letter.id, whyNot(letter, other?.letter))
      }
      if (!proceed(ids.length)) return undefined
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

/** A damaged letter, unless the target has that very version from before. */
function isLost(ours: DeadLetter, theirs: DeadLetter | undefined): boolean {
  return theirs?.version !== ours.version
}

function whyNot(ours: DeadLetter, theirs: DeadLetter | undefined): string {
  if (!theirs) return 'missing in the target'
  if (theirs.corrupt !== undefined) return `cannot be read in the target: ${theirs.corrupt}`
  if (theirs.version < ours.version) return 'older in the target'
  if (theirs.version > ours.version) return 'newer in the target'
  return 'not the same in the target'
}

/** By state and by queue, as both stores count. Answers the counts of the target by state. */
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
async function findStrangers(from: Store, to: Store, differs: Differs): Promise<void> {
  for await (const { batches } of idPages(to))
    for (const ids of batches) {
      const known = await from.find({ ...everything, ids, limit: ids.length })
      const there = new Set(known.items.map(({ id }) => id))
      for (const id of ids) if (!there.has(id)) differs(id, 'only in the target')
    }
}

function compareTotals(ours: readonly Total[], theirs: readonly Total[], differs: Differs): void {
  const keyed = (totals: readonly Total[]): Map<string, string> =>
    new Map(
      totals.map(({ action, queue, priority, count, retries, maxRetries, backoffMs }) => [
        `${action} ${priority} ${queue}`,
        JSON.stringify([count, retries, maxRetries, backoffMs]),
      ]),
    )
  const [here, there] = [keyed(ours), keyed(theirs)]
  for (const name of new Set([...here.keys(), ...there.keys()]))
    if (here.get(name) !== there.get(name))
      differs(
        name,
        `${here.get(name) ?? 'none'} in the source, ${there.get(name) ?? 'none'} in the target`,
      )
}
