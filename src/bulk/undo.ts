import { RedriveError } from '../errors.ts'
import {
  isMarkedBy,
  type BulkAction,
  type EditPreview,
  type PlannedLetter,
} from '../letter/bulk-action.ts'
import type { LetterSummary } from '../letter/letter.ts'
import { diffPayloads } from '../letter/payload-diff.ts'
import type { Store } from '../store.ts'
import { loadLetters, payloadPage } from './act.ts'
import { whyIneligible } from './eligibility.ts'
import { readPlanOptions, type UndoOptions } from './plan-options.ts'
import {
  formatReasons,
  selectLetters,
  storePlan,
  type Candidate,
  type PlannerOptions,
  type Selection,
} from './planner.ts'
import { BulkRecords } from './records.ts'

/**
 * Plans an action that restores the payloads of the letters that an edit has changed, each as it
 * was before that edit.
 */
export async function planUndo(
  planner: PlannerOptions,
  editId: string,
  options: UndoOptions,
): Promise<BulkAction> {
  const records = new BulkRecords(planner.store)
  const { action: edit } = await records.load(editId)
  checkUndoable(edit)
  const read = readPlanOptions('undo', options)
  const selection = await selectLetters('undo', findEdited(planner, records, edit))
  if (selection.count === 0) throw new RedriveError('INVALID_INPUT', whyEmpty(edit, selection))
  const plan = { ...read, input: { undoes: edit.id }, filter: edit.filter, action: 'undo' } as const
  return storePlan(planner, plan, selection, await previewUndo(planner, selection))
}

function checkUndoable({ id, action, state }: BulkAction): void {
  if (action !== 'edit')
    throw new RedriveError(
      'INVALID_INPUT',
      `bulk action ${id} is ${action}: only an edit can be undone, give the id of one`,
    )
  if (state === 'running')
    throw new RedriveError(
      'ILLEGAL_MOVE',
      `bulk action ${id} is running: pause or cancel it, then plan its undo`,
    )
}

function whyEmpty({ id, state }: BulkAction, { ineligible }: Selection): string {
  const { count } = ineligible
  if (count > 0)
    return `undo is possible for none of the ${count} letters that bulk action ${id} edited (${formatReasons(ineligible)})`
  return `bulk action ${id} is ${state} and has edited no letter: there is nothing to undo, check the id`
}

/** The letters that an edit has changed, in the order in which it did. */
async function* findEdited(
  { store, findUndo, maxReplays }: PlannerOptions,
  records: BulkRecords,
  edit: BulkAction,
): AsyncGenerator<Candidate[]> {
  const rules = { action: 'undo', input: {}, maxReplays } as const
  const candidateOf = async (
    { id, version }: PlannedLetter,
    letter: LetterSummary | undefined,
  ): Promise<Candidate> => {
    if (!letter) return { id, why: 'it was removed after the edit' }
    let why = whyIneligible(letter, rules)
    // The edit made the next version. If the letter still has it, nothing has happened since.
    if (why === undefined && letter.version !== version + 1) {
      const undo = await findUndo(letter, version)
      if ('refusal' in undo) why = undo.refusal
    }
    return { id, letter, why, editedVersion: version }
  }
  for await (const { letters } of records.chunks(edit.id))
    for (let start = 0; start < letters.length; start += payloadPage) {
      const page = letters.slice(start, start + payloadPage)
      const ids = page.map(({ id }) => id)
      const { items } = await store.find({ ids, limit: ids.length })
      const found = new Map(items.map((letter) => [letter.id, letter]))
      const edited = await keepEdited(store, edit, page, found)
      yield Promise.all(edited.map((planned) => candidateOf(planned, found.get(planned.id))))
    }
}

/**
 * The letters that the edit has changed. If its worker died, some of them have no outcome: their
 * history shows it.
 */
async function keepEdited(
  store: Store,
  { id: editId }: BulkAction,
  page: readonly PlannedLetter[],
  found: ReadonlyMap<string, LetterSummary>,
): Promise<PlannedLetter[]> {
  const unclear = page.filter(
    ({ id, version, outcome }) =>
      outcome === undefined && (found.get(id)?.version ?? version) !== version,
  )
  const changed = await loadLetters(store, unclear)
  const marked = new Set(changed.filter((one) => isMarkedBy(editId, one)).map(({ id }) => id))
  return page.filter(({ id, outcome }) => outcome === 'succeeded' || marked.has(id))
}

/** What the undo would change in some letters. */
async function previewUndo(
  { store, findUndo }: PlannerOptions,
  { sample, shares }: Selection,
): Promise<EditPreview[]> {
  const ids = new Set(sample.map(({ id }) => id))
  const versions = new Map<string, number>()
  for (const share of shares.values())
    for (const { id, editedVersion } of share)
      if (ids.has(id) && editedVersion !== undefined) versions.set(id, editedVersion)
  const letters = await store.get([...ids])
  return Promise.all(
    letters.map(async (letter) => {
      const undo = await findUndo(letter, versions.get(letter.id)!)
      if ('refusal' in undo) return { id: letter.id, error: undo.refusal }
      return { id: letter.id, diff: diffPayloads(letter.payload, undo.payload) }
    }),
  )
}
