import { RedriveError } from '../../errors.ts'
import { inHistory } from '../../letter/history.ts'
import type { DeadLetter, HistoryEntry } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import type { AddResult, Capacity, KeepResult, KeptLetter } from '../../store.ts'
import { Batcher, splitResults } from '../../backends/batcher.ts'
import { toText, type Reply } from '../../backends/redis/connection.ts'
import { actionCode, categoryCode, recoverabilityCode, severityCode } from '../rows/codes.ts'
import { at } from '../rows/columns.ts'
import { encodeLetter, factsOf } from '../rows/encode.ts'
import { encodeEntry } from '../rows/history-column.ts'
import { keyHash } from '../rows/key-hash.ts'
import { batchLimits, costOf, maxScriptItems, sendInChunks } from './chunks.ts'
import { maxNumber, maxReads, type StoreContext } from './context.ts'
import { encodeLetters, type LetterRecord } from './encode.ts'
import { scripts } from './scripts.ts'

export type Add = (letters: readonly DeadLetter[], capacity?: Capacity) => Promise<AddResult[]>

export function createAdder(context: StoreContext): Add {
  const adding = new Batcher<readonly LetterRecord[], Added[]>(batchLimits, async (calls) => {
    const replies = await context.runMove(scripts.add, calls.map(encodeLetters))
    const results = decodeAdded(replies, calls)
    return splitResults(results, calls).map((value) => ({ value }))
  })

  /**
   * More letters must be evicted than one script may evict: they are evicted in steps, and then the
   * letter is added. The excess is computed again each time, since room made for one letter serves
   * all letters of the batch.
   */
  const makeRoom = async (record: LetterRecord, maxItems: number): Promise<AddResult> => {
    let evicted = 0
    for (let reads = 0; reads < maxReads; reads++) {
      const [result] = await adding.call([record])
      if (result!.kind === 'added')
        return { kind: 'added', evicted: evicted + (result!.evicted ?? 0) }
      if (result!.kind !== 'overfull') return result!
      let left = result!.excess
      while (left > 0) {
        const count = String(Math.min(left, maxScriptItems))
        const [gone] = (await context.runMove(scripts.evict, [count, String(maxItems)])) as [number]
        evicted += gone
        left = gone === 0 ? 0 : left - gone
      }
    }
    return { kind: 'full' }
  }

  return (letters, capacity) =>
    sendInChunks(
      letters,
      async (some, cost) => {
        const records = some.map((letter) => recordOf(letter, capacity))
        const results: AddResult[] = []
        for (const [index, added] of (await adding.call(records, cost)).entries())
          results.push(
            added.kind === 'overfull' ? await makeRoom(records[index]!, capacity!.maxItems) : added,
          )
        return results
      },
      letterCost,
    )
}

const letterCost = ({ payload }: DeadLetter): number => costOf(payload.bytes.length)

function recordOf(letter: DeadLetter, capacity: Capacity | undefined): LetterRecord {
  const extras = encodeExtras(letter, capacity)
  return { id: letter.id, extras, letter: encodeLetter(letter) }
}

/** What only some letters need. Empty: nothing. */
function encodeExtras(letter: DeadLetter, capacity: Capacity | undefined): string {
  const { dependsOn = [], dedupeKey } = letter
  if (dependsOn.length === 0 && dedupeKey === undefined && !capacity) return ''
  return JSON.stringify({
    ...(dependsOn.length > 0 ? { d: [...new Set(dependsOn)] } : {}),
    ...(dedupeKey === undefined ? {} : { o: encodeOccurrence(letter, dedupeKey) }),
    ...(capacity && letter.state !== 'archived'
      ? { c: [limitOf(capacity), capacity.overflow === 'reject' ? 0 : 1] }
      : {}),
  })
}

/** Checked before it is sent: a script that fails halfway would leave other letters uncounted. */
function limitOf({ maxItems }: Capacity): number {
  if (Number.isNaN(maxItems))
    throw new RedriveError('INVALID_INPUT', 'maxItems must be a number, got NaN')
  return Math.min(maxItems, maxNumber)
}

/**
 * The queue and the hash of the dedupe key, and what an occurrence changes in the letter that holds
 * the key: see `occur` in `letter/moves.ts`. The history entry is in two parts: the script puts the
 * state of the letter between them, twice.
 */
function encodeOccurrence(letter: DeadLetter, dedupeKey: string): object {
  const { failure, category, severity, recoverability } = letter
  const entry: HistoryEntry = {
    at: letter.deadLetteredAt,
    actor: letter.history[0]?.actor ?? 'capture',
    action: 'occur',
    from: null,
    to: null,
    failure: inHistory({ failure, category }),
  }
  const head = JSON.stringify([toMs(entry.at), entry.actor, actionCode(entry.action)]).slice(0, -1)
  return {
    q: letter.queue.toWellFormed(),
    k: keyHash(dedupeKey).toString('base64url'),
    c: categoryCode(category),
    g: letter.fingerprint.toWellFormed(),
    s: severityCode(severity),
    r: recoverabilityCode(recoverability),
    f: JSON.stringify(failure),
    u: toMs(entry.at),
    h: [`${head},`, encodeEntry(entry).slice(head.length + ',null,null'.length)],
  }
}

/**
 * The result for a letter; `overfull` if so many letters must be evicted first that it takes
 * several steps.
 */
type Added = AddResult | { kind: 'overfull'; excess: number }

/** The reply has pairs of number and result, for letters that were not just added. */
function decodeAdded(replies: Reply[], calls: readonly (readonly LetterRecord[])[]): Added[] {
  const results = calls.flatMap((records) => records.map((): Added => ({ kind: 'added' })))
  for (let at = 0; at < replies.length; at += 2)
    results[(replies[at] as number) - 1] = decodeResult(replies[at + 1]!)
  return results
}

function decodeResult(reply: Reply): Added {
  const [kind, first, second] = reply as [Buffer, (Buffer | number)?, number?]
  switch (kind.toString()) {
    case 'a':
      return { kind: 'added', evicted: first as number }
    case 'i':
      return { kind: 'duplicate', of: toText(first), by: 'id', occurrences: second! }
    case 'k':
      return { kind: 'duplicate', of: toText(first), by: 'dedupeKey', occurrences: second! }
    case 'm':
      return { kind: 'overfull', excess: first as number }
    default:
      return { kind: 'full' }
  }
}

/** Stores letters of another store unchanged. */
export function keepLetters(
  context: StoreContext,
  letters: readonly KeptLetter[],
): Promise<KeepResult[]> {
  return sendInChunks(
    letters,
    async (some) => {
      const replies = await context.runMove(scripts.keep, [encodeLetters(some.map(keptRecord))])
      return replies.map((reply) => (reply === 1 ? 'written' : 'conflict'))
    },
    ({ letter, original }) => letterCost(letter) + costOf(original?.bytes.length ?? 0),
  )
}

/** A letter for the script `keep`. */
function keptRecord({ letter, original, waitsFor, replaces }: KeptLetter): LetterRecord {
  const encoded = encodeLetter(original ? { ...letter, payload: original } : letter)
  if (original) encoded.row[at.edit] = JSON.stringify(factsOf(letter.payload))
  const extras = JSON.stringify({ v: letter.version, d: [...new Set(waitsFor)], r: replaces })
  const edit = original ? letter.payload.bytes : undefined
  return { id: letter.id, extras, letter: encoded, edit }
}
