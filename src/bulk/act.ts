import type { Clock } from '../clock/clock.ts'
import { hasCode, RedriveError } from '../errors.ts'
import { bulkMovesFor, type BulkMoveName } from '../letter/bulk-moves.ts'
import type { DeadLetter, LetterSummary } from '../letter/letter.ts'
import { edit, parkAtReplayLimit, restore, type Change, type Mover } from '../letter/moves.ts'
import type { FixCheck } from '../letter/replay-safety.ts'
import type { ReplayOutcome } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'
import { isMarkedBy, noteOf, type BulkAction, type PlannedLetter } from '../letter/bulk-action.ts'
import { editOf, errorText, type EditContext } from './edit.ts'
import { whyIneligible, type EligibilityRules } from './eligibility.ts'

export interface ActContext
  extends
    Pick<EligibilityRules, 'maxReplays' | 'repairRulesFor'>,
    Pick<
      EditContext,
      'transforms' | 'prepareEdit' | 'removeUnusedEdit' | 'findUndo' | 'removeSavedEdit'
    > {
  store: Store
  clock: Clock
  hub: ObserverHub
  /** Publishes a letter to its source, or to the mailbox `to`. */
  publish: (letter: DeadLetter, to?: string) => Promise<ReplayOutcome>
  /** Creates a check against the groups as they are when it is first used. */
  createFixCheck: () => FixCheck
  /** The changes that replays make, in the same order. */
  prepareReplays: (published: readonly PublishedLetter[]) => Promise<Change[]>
}

interface PublishedLetter {
  letter: DeadLetter
  messageId?: string | undefined
  by: Mover
}

/** Without an outcome: the action has to act on the letter again. */
type ActResult = Pick<PlannedLetter, 'outcome' | 'error'>

/**
 * Acts on letters of a plan, and returns them with their outcomes, in the same order. A letter
 * without an outcome could not be published now.
 */
export async function act(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<PlannedLetter[]> {
  const acted = await outcomesOf(context, action, letters)
  return letters.map((letter, index) => {
    const { error: _, ...planned } = letter
    return { ...planned, ...acted[index]! }
  })
}

function outcomesOf(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  switch (action.action) {
    case 'retry':
      return retryAll(context, action, letters)
    case 'resolve':
    case 'park':
    case 'archive':
      return moveAll(context, action, action.action, letters)
    case 'priority':
    case 'tag':
    case 'restore':
      return changeEach(context, action, letters)
    case 'edit':
      return editEach(context, action, letters)
    case 'undo':
      return undoEach(context, action, letters)
    case 'remove':
      return removeAll(context, action, letters)
    case 'replay':
      return replayEach(context, action, letters)
  }
}

function moverOf({ clock }: ActContext, action: BulkAction): Mover {
  const at = toTimestamp(clock.now())
  return { at, actor: action.by, note: noteOf(action), guard: 'version' }
}

/** When retried letters become due. A past time means now. */
function dueAt({ clock }: ActContext, { input }: BulkAction): string | undefined {
  const now = toTimestamp(clock.now())
  return input.at !== undefined && input.at > now ? input.at : undefined
}

/** Makes letters due. Where a queue requires it, only those whose groups are fixed. */
async function retryAll(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  const { store, repairRulesFor, createFixCheck } = context
  const needsFix = Object.keys(action.queues).some((queue) => repairRulesFor?.(queue).requireFix)
  if (!needsFix) return moveAll(context, action, 'retry', letters)
  const whyUnfixed = createFixCheck()
  const acted = new Map<string, ActResult>()
  for (const letter of (await findUnchanged(store, letters)).values()) {
    const error = await whyUnfixed(letter)
    if (error !== undefined) acted.set(letter.id, { outcome: 'skipped', error })
  }
  const fixed = letters.filter(({ id }) => !acted.has(id))
  const moved = await moveAll(context, action, 'retry', fixed)
  for (const [index, { id }] of fixed.entries()) acted.set(id, moved[index]!)
  return letters.map(({ id }) => acted.get(id)!)
}

/** Makes the same move on all letters that have not changed since the plan. */
async function moveAll(
  context: ActContext,
  action: BulkAction,
  name: BulkMoveName,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  const moves = bulkMovesFor(name, moverOf(context, action), dueAt(context, action))
  const results = await context.store.applyAll(letters, moves)
  const done: ActResult = { outcome: name === 'retry' ? 'waiting' : 'succeeded' }
  const conflicts = letters.filter((_, index) => results[index] === 'conflict')
  const explained = await explainConflicts(context, action, conflicts, done)
  return letters.map(({ id }, index) => {
    if (results[index] === 'written') return done
    return results[index] === 'missing' ? removedMeanwhile : explained.get(id)!
  })
}

const removedMeanwhile: ActResult = { outcome: 'skipped', error: 'it was removed after the plan' }

/**
 * Why letters have another version than in the plan. A crash may have kept this action from
 * recording its own change: then the history has its mark.
 */
async function explainConflicts(
  { store }: ActContext,
  { id: actionId }: BulkAction,
  letters: readonly PlannedLetter[],
  done: ActResult,
): Promise<Map<string, ActResult>> {
  const explained = new Map(letters.map(({ id }) => [id, removedMeanwhile]))
  for (const letter of await loadLetters(store, letters)) {
    explained.set(letter.id, isMarkedBy(actionId, letter) ? done : changedMeanwhile(letter))
  }
  return explained
}

function changedMeanwhile({ state }: Pick<DeadLetter, 'state'>): ActResult {
  return { outcome: 'skipped', error: `it changed after the plan and is ${state} now` }
}

/** Letters that are loaded with their payloads at once. */
export const payloadPage = 50

/** Complete letters. Letters that were removed are left out. */
export async function loadLetters(
  store: Store,
  letters: readonly PlannedLetter[],
): Promise<DeadLetter[]> {
  const loaded: DeadLetter[] = []
  for (let start = 0; start < letters.length; start += payloadPage)
    loaded.push(...(await store.get(letters.slice(start, start + payloadPage).map(({ id }) => id))))
  return loaded
}

/** Letters that have the version of the plan, by id, without payloads. */
async function findUnchanged(
  store: Store,
  letters: readonly PlannedLetter[],
): Promise<Map<string, LetterSummary>> {
  const versions = new Map(letters.map(({ id, version }) => [id, version]))
  const { items } = await store.find({ ids: [...versions.keys()], limit: letters.length })
  const unchanged = items.filter(({ id, version }) => version === versions.get(id))
  return new Map(unchanged.map((letter) => [letter.id, letter]))
}

/** Makes a change of its own on each letter that has not changed since the plan. */
async function changeEach(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  const { store } = context
  const mover = moverOf(context, action)
  const unchanged = await findUnchanged(store, letters)
  const changes = [...unchanged.values()].map((letter) => changeOf(action, letter, mover))
  const results = await store.apply(changes)
  const written = new Set(changes.filter((_, at) => results[at] === 'written').map(({ id }) => id))
  const done: ActResult = { outcome: 'succeeded' }
  const rest = letters.filter(({ id }) => !written.has(id))
  const explained = await explainConflicts(context, action, rest, done)
  return letters.map(({ id }) => explained.get(id) ?? done)
}

function changeOf({ action, input }: BulkAction, letter: LetterSummary, by: Mover): Change {
  if (action === 'restore') return restore(letter, by)
  if (action === 'priority') return edit(letter, by, { priority: input.priority! })
  const { addTags = [], removeTags = [] } = input
  const kept = letter.tags.filter((tag) => !removeTags.includes(tag))
  return edit(letter, by, { tags: [...new Set([...kept, ...addTags])] })
}

/** Edits the payload of each letter that has not changed since the plan. */
function editEach(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  return changePayloads(
    context,
    action,
    letters,
    (letter) =>
      context.prepareEdit(letter, editOf(context, letter, action.input), moverOf(context, action)),
    (letter) => context.removeUnusedEdit(letter),
  )
}

/** Restores the payload that each letter had before an edit. */
async function undoEach(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  const acted = await changePayloads(context, action, letters, async (letter, planned) => {
    const undo = await context.findUndo(letter, planned.editedVersion!)
    if ('refusal' in undo) return { outcome: 'skipped', error: undo.refusal }
    return edit(letter, moverOf(context, action), { payload: undo.payload })
  })
  // A crash may have kept an earlier attempt from doing this.
  const undone = letters.filter((_, index) => acted[index]!.outcome === 'succeeded')
  await Promise.all(
    undone.map(({ id, editedVersion }) => context.removeSavedEdit(id, editedVersion!)),
  )
  return acted
}

/** Changes each letter that has not changed since the plan, unless `prepare` has an outcome. */
async function changePayloads(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
  prepare: (letter: DeadLetter, planned: PlannedLetter) => Promise<Change | ActResult>,
  onConflict?: (letter: DeadLetter) => Promise<void>,
): Promise<ActResult[]> {
  const { store } = context
  const acted = new Map<string, ActResult>()
  for (let start = 0; start < letters.length; start += payloadPage) {
    const page = letters.slice(start, start + payloadPage)
    const loaded = new Map((await loadLetters(store, page)).map((letter) => [letter.id, letter]))
    const changes: Change[] = []
    for (const planned of page) {
      const { id, version } = planned
      const letter = loaded.get(id)
      if (letter?.version !== version) continue
      try {
        const prepared = await prepare(letter, planned)
        if ('guard' in prepared) changes.push(prepared)
        else acted.set(id, prepared)
      } catch (error) {
        if (error instanceof RedriveError && error.retryHelps) throw error
        acted.set(id, { outcome: 'failed', error: errorText(error) })
      }
    }
    const results = await store.apply(changes)
    for (const [index, { id }] of changes.entries())
      if (results[index] === 'written') acted.set(id, { outcome: 'succeeded' })
      else await onConflict?.(loaded.get(id)!)
  }
  const rest = letters.filter(({ id }) => !acted.has(id))
  const explained = await explainConflicts(context, action, rest, { outcome: 'succeeded' })
  return letters.map(({ id }) => acted.get(id) ?? explained.get(id)!)
}

/** Removes the letters that have not changed since the plan. One that is gone has succeeded. */
async function removeAll(
  { store, hub }: ActContext,
  { by }: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  const unchanged = await findUnchanged(store, letters)
  for (const [state, some] of Map.groupBy(unchanged.values(), (letter) => letter.state)) {
    const count = await store.remove({ ids: some.map(({ id }) => id), state })
    if (count > 0) hub.emit({ type: 'removed', count, by })
  }
  // A search index may lag behind; `get` does not.
  const kept = new Map((await loadLetters(store, letters)).map((letter) => [letter.id, letter]))
  return letters.map(({ id }) => {
    const letter = kept.get(id)
    return letter ? changedMeanwhile(letter) : { outcome: 'succeeded' }
  })
}

/**
 * Publishes letters, then records it. A letter that was being published when its worker died is
 * published again: nobody knows whether it was.
 */
async function replayEach(
  context: ActContext,
  action: BulkAction,
  letters: readonly PlannedLetter[],
): Promise<ActResult[]> {
  const { store } = context
  const loaded = new Map((await loadLetters(store, letters)).map((letter) => [letter.id, letter]))
  const whyUnfixed = context.createFixCheck()
  const published = await Promise.all(
    letters.map((planned) =>
      publishOne(context, action, planned, loaded.get(planned.id), whyUnfixed),
    ),
  )
  const changes = [
    ...published.flatMap(({ change }) => change ?? []),
    ...(await context.prepareReplays(published.flatMap(({ replayed }) => replayed ?? []))),
  ]
  const results = await store.apply(changes)
  const conflicts = new Set(
    changes.filter((_, at) => results[at] !== 'written').map(({ id }) => id),
  )
  return published.map(({ acted }, index) =>
    conflicts.has(letters[index]!.id) ? { ...acted, error: changedBeforeRecorded } : acted,
  )
}

const changedBeforeRecorded = 'it was published, but changed before that was recorded'

interface Published {
  acted: ActResult
  change?: Change
  replayed?: PublishedLetter
}

async function publishOne(
  context: ActContext,
  action: BulkAction,
  planned: PlannedLetter,
  letter: DeadLetter | undefined,
  whyUnfixed: FixCheck,
): Promise<Published> {
  const { publish, maxReplays, repairRulesFor } = context
  if (!letter) return { acted: removedMeanwhile }
  const { sends = 1 } = planned
  // It was published by an attempt before this one.
  if (isMarkedBy(action.id, letter))
    return { acted: { outcome: sends > 2 ? 'indeterminate' : 'succeeded' } }
  if (letter.version !== planned.version) return { acted: changedMeanwhile(letter) }
  const rules = { ...action, maxReplays, repairRulesFor }
  const why = whyIneligible(letter, rules) ?? (await whyUnfixed(letter))
  if (why !== undefined) return { acted: { outcome: 'skipped', error: why } }
  try {
    const outcome = await publish(letter, action.input.to)
    const by = moverOf(context, action)
    if (outcome.kind === 'limit')
      return {
        acted: { outcome: 'failed', error: `it reached its replay limit (${outcome.maxReplays})` },
        change: parkAtReplayLimit(letter, by),
      }
    return {
      acted: { outcome: sends > 1 ? 'indeterminate' : 'succeeded' },
      replayed: { letter, messageId: outcome.messageId, by },
    }
  } catch (error) {
    const text = errorText(error)
    // The broker may have the message. It is published again, and then reported as indeterminate.
    if (hasCode(error, 'MAILBOX_UNAVAILABLE')) return { acted: { error: text } }
    return { acted: { outcome: 'failed', error: text } }
  }
}
