import type { KeepResult } from '../../store.ts'
import { at } from '../rows/columns.ts'
import { insertLetter, refuseWhenLow } from './add.ts'
import type { StoreContext } from './context.ts'
import { countedOf } from './counted.ts'
import { findEntry, loadLetters } from './letters.ts'
import { eraseLetter, writeEdit } from './move.ts'
import { after, formatId, type LoadedStored, type SentStored } from './transfer.ts'
import { releaseDependents, waitsOf } from './waits.ts'

/** Stores letters from another store unchanged. */
export function keep(context: StoreContext, letters: readonly SentStored[]): KeepResult[] {
  refuseWhenLow(context)
  const done: string[] = []
  const results = letters.map((letter) => keepLetter(context, letter, done))
  releaseDependents(context, done)
  return results
}

function keepLetter(context: StoreContext, sent: SentStored, done: string[]): KeepResult {
  const [letter, edit, replaces] = sent
  const same = findEntry(context, letter[at.id] as string)
  if (same && same.version >= (letter[at.version] as number)) return 'conflict'
  if (replaces !== null && same?.version !== replaces) return 'conflict'
  if (same) eraseLetter(context, same)
  const queue = context.queues.number(letter[after.queue] as string)
  const seq = insertLetter(context, countedOf(queue, letter), letter, done)
  if (edit !== null) writeEdit(context, seq, edit)
  return 'written'
}

/** Letters with everything that the store knows about them. */
export function stored(context: StoreContext, ids: readonly string[]): LoadedStored[] {
  return loadLetters(context, 'id', ids, 'whole').map((letter) => {
    const id = formatId(letter[at.id] as string)
    const captured = letter[at.edit] === null ? [] : loadLetters(context, 'id', [id], 'captured')
    const { seq } = findEntry(context, id)!
    return [letter, captured[0] ?? null, waitsOf(context, seq)]
  })
}
