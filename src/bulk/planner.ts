import { checkFilter, checkRemoval } from '../check/filter.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { states as allStates, type LetterSummary, type State } from '../letter/letter.ts'
import { maxLimit, type LetterFilter } from '../letter/query.ts'
import type { FixCheck } from '../letter/replay-safety.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import {
  noProgress,
  type BulkAction,
  type BulkActionName,
  type EditPreview,
  type FilterActionName,
  type Ineligible,
  type PlannedLetter,
  type SampleLetter,
} from '../letter/bulk-action.ts'
import { checkTransform, previewEdits, type EditContext } from './edit.ts'
import { statesFor, whyIneligible, type EligibilityRules } from './eligibility.ts'
import { readPlanOptions, type PlanOptions, type ReadPlanOptions } from './plan-options.ts'
import { BulkRecords, chunkLetters } from './records.ts'
import { SupersededLetters } from './superseded.ts'

/** Letters and reasons that a plan shows. */
const sampleSize = 10
const ineligibleSampleSize = 100
/** Larger sets are planned in parts, by a filter for each. */
const maxLetters = 2_000_000
/** Chunks that are written at once. */
const chunksAtOnce = 8

export interface PlannerOptions
  extends
    Pick<EligibilityRules, 'maxReplays' | 'repairRulesFor'>,
    Pick<EditContext, 'transforms' | 'editedValues' | 'findUndo'> {
  store: Store
  clock: Clock
  createFixCheck: () => FixCheck
  /** Plans with more letters than this need a second person. */
  approval?: { above: number } | undefined
}

/** The letters of a plan by tenant and queue, in the order of capture. */
type Shares = Map<string, PlannedLetter[]>

/** A letter that may become part of a plan. */
export interface Candidate {
  id: string
  /** Absent: it was removed. */
  letter?: LetterSummary
  /** Why the action is not possible. */
  why?: string | undefined
  editedVersion?: number
}

/**
 * Plans an action: fixes the set of letters with their versions, and stores it. Letters that are
 * captured later are not part of it.
 */
export async function planAction(
  planner: PlannerOptions,
  name: FilterActionName,
  filter: LetterFilter,
  options: PlanOptions,
): Promise<BulkAction> {
  const { maxReplays, repairRulesFor } = planner
  checkFilter(filter)
  const read = readPlanOptions(name, options)
  const { input } = read
  if (name === 'remove') checkRemoval(filter)
  checkTransform(planner, input)
  const rules = { action: name, input, maxReplays, repairRulesFor }
  const selection = await selectLetters(name, findCandidates(planner, filter, rules))
  const { count, sample, ineligible } = selection
  if (count === 0) throw new RedriveError('INVALID_INPUT', whyEmpty(name, ineligible))
  const preview = name === 'edit' ? await previewEdits(planner, sample, input) : undefined
  return storePlan(planner, { ...read, action: name, filter }, selection, preview)
}

/** Stores the letters of a plan, then the plan. */
export async function storePlan(
  { store, clock, approval }: PlannerOptions,
  plan: ReadPlanOptions & Pick<BulkAction, 'action' | 'filter'>,
  { shares, ...selected }: Selection,
  preview?: EditPreview[],
): Promise<BulkAction> {
  const { by = 'operator', reason, expiresInMs, action: name, filter, input, limits } = plan
  const { count } = selected
  const id = clock.id()
  const records = new BulkRecords(store)
  await writeChunks(records, id, shares)
  const nowMs = clock.now()
  const action: BulkAction = {
    id,
    action: name,
    filter,
    input,
    limits,
    state: 'planned',
    by,
    ...(reason === undefined ? {} : { reason }),
    ...selected,
    ...(preview ? { preview } : {}),
    progress: { ...noProgress, pending: count },
    ...(approval && count > approval.above ? { approval: { above: approval.above } } : {}),
    plannedAt: toTimestamp(nowMs),
    expiresAt: toTimestamp(nowMs + expiresInMs),
  }
  await records.create(action)
  return action
}

function whyEmpty(name: BulkActionName, ineligible: Ineligible): string {
  const { count } = ineligible
  if (count === 0) return 'no letter matches the filter: nothing was planned'
  return `${name} is possible for none of the ${count} letters that match the filter (${formatReasons(ineligible)})`
}

/** The number of letters for each reason, as text. */
export function formatReasons({ reasons }: Ineligible): string {
  return Object.entries(reasons)
    .map(([reason, letters]) => `${letters}: ${reason}`)
    .join('; ')
}

/** All letters that match, in the order of capture. */
async function* findCandidates(
  { store, createFixCheck }: PlannerOptions,
  filter: LetterFilter,
  rules: EligibilityRules,
): AsyncGenerator<Candidate[]> {
  const { action, input } = rules
  const state = filter.state ?? (filter.ids ? undefined : statesFor(action))
  const query = {
    ...filter,
    ...(state ? { state } : {}),
    order: 'oldest',
    limit: maxLimit,
  } as const
  const superseded = new SupersededLetters(store)
  const whyUnfixed = createFixCheck()
  const mayRun = action === 'retry' || action === 'replay'
  const whyNotRun = async (letter: LetterSummary): Promise<string | undefined> => {
    const why = await whyUnfixed(letter)
    if (why !== undefined || input.includeSuperseded || !(await superseded.has(letter))) return why
    return 'a newer letter of its lane has succeeded: set includeSuperseded to act on it'
  }
  for (let cursor: string | undefined; ;) {
    const page = await store.find({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    const candidates: Candidate[] = []
    for (const letter of page.items) {
      const why = whyIneligible(letter, rules) ?? (mayRun ? await whyNotRun(letter) : undefined)
      candidates.push({ id: letter.id, letter, why })
    }
    yield candidates
    if (page.cursor === undefined) return
    cursor = page.cursor
  }
}

export interface Selection {
  shares: Shares
  count: number
  states: BulkAction['states']
  queues: BulkAction['queues']
  sample: SampleLetter[]
  ineligible: Ineligible
}

/** The letters for which an action is possible, and why it is not for the others. */
export async function selectLetters(
  action: BulkActionName,
  pages: AsyncIterable<readonly Candidate[]>,
): Promise<Selection> {
  const shares: Shares = new Map()
  const sample: SampleLetter[] = []
  const stateCounts = new Map<State, number>()
  const queueCounts = new Map<string, number>()
  const ineligible: Ineligible = { count: 0, reasons: {}, sample: [] }
  let count = 0
  for await (const page of pages) {
    for (const { id, letter, why, editedVersion } of page) {
      if (!letter || why !== undefined) {
        addIneligible(ineligible, id, why ?? 'it was removed')
        continue
      }
      count += 1
      increment(stateCounts, letter.state)
      increment(queueCounts, letter.queue)
      if (sample.length < sampleSize) sample.push(sampleOf(letter))
      const edited = editedVersion === undefined ? {} : { editedVersion }
      shareOf(shares, letter).push({ ...planned(letter, action), ...edited })
    }
    if (count > maxLetters)
      throw new RedriveError(
        'INVALID_INPUT',
        `more than ${maxLetters} letters match the filter: plan them in parts, such as by queue or with since and until`,
      )
  }
  const states = Object.fromEntries(
    allStates.flatMap((state) =>
      stateCounts.has(state) ? [[state, stateCounts.get(state)!]] : [],
    ),
  )
  const queues = Object.fromEntries(queueCounts)
  return { shares, count, states, queues, sample, ineligible }
}

function increment<T>(counts: Map<T, number>, key: T): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function shareOf(shares: Shares, { tenant = '', queue }: LetterSummary): PlannedLetter[] {
  const key = `${tenant}\n${queue}`
  const share = shares.get(key) ?? []
  if (share.length === 0) shares.set(key, share)
  return share
}

/** A retry of a pending letter does not reset its retries. */
function planned(letter: LetterSummary, action: BulkActionName): PlannedLetter {
  const { id, version, retries, state } = letter
  const counted = action === 'retry' && state === 'pending' && retries > 0
  return { id, version, ...(counted ? { retries } : {}) }
}

function sampleOf({ id, queue, state, failure }: LetterSummary): SampleLetter {
  return { id, queue, state, failure: `${failure.name}: ${failure.message}`.slice(0, 200) }
}

function addIneligible(ineligible: Ineligible, id: string, reason: string): void {
  ineligible.count += 1
  ineligible.reasons[reason] = (ineligible.reasons[reason] ?? 0) + 1
  if (ineligible.sample.length < ineligibleSampleSize) ineligible.sample.push({ id, reason })
}

/**
 * Stores the letters of a plan. Tenants and queues take turns, so that a large share does not delay
 * a small one.
 */
async function writeChunks(records: BulkRecords, id: string, shares: Shares): Promise<void> {
  let writing: Promise<void>[] = []
  let index = 0
  for (const letters of takeTurns([...shares.values()])) {
    writing.push(records.createChunk(id, index, letters))
    index += 1
    if (writing.length < chunksAtOnce) continue
    await Promise.all(writing)
    writing = []
  }
  await Promise.all(writing)
}

/** Chunks with one letter of each share after the other. */
function* takeTurns(shares: readonly PlannedLetter[][]): Generator<PlannedLetter[]> {
  let chunk: PlannedLetter[] = []
  for (let turn = 0, left = shares; left.length > 0; turn += 1) {
    for (const share of left) {
      chunk.push(share[turn]!)
      if (chunk.length < chunkLetters) continue
      yield chunk
      chunk = []
    }
    left = left.filter((share) => share.length > turn + 1)
  }
  if (chunk.length > 0) yield chunk
}
