import { checkFilter, checkRemoval } from '../check/filter.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { states as allStates, type LetterSummary, type State } from '../letter/letter.ts'
import { maxLimit, type LetterFilter } from '../letter/query.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import {
  isDestructive,
  noProgress,
  type BulkAction,
  type BulkActionName,
  type Ineligible,
  type PlannedLetter,
  type SampleLetter,
} from '../letter/bulk-action.ts'
import { checkTransform, previewEdits, type EditContext } from './edit.ts'
import { statesFor, whyIneligible, type EligibilityRules } from './eligibility.ts'
import { readPlanOptions, type PlanOptions } from './plan-options.ts'
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
    Pick<EditContext, 'transforms' | 'editedValues'> {
  store: Store
  clock: Clock
  /** Plans with more letters than this need a second person. */
  approval?: { above: number } | undefined
}

/** The letters of a plan by tenant and queue, in the order of capture. */
type Shares = Map<string, PlannedLetter[]>

/**
 * Plans an action: fixes the set of letters with their versions, and stores it. Letters that are
 * captured later are not part of it.
 */
export async function planAction(
  planner: PlannerOptions,
  name: BulkActionName,
  filter: LetterFilter,
  options: PlanOptions,
): Promise<BulkAction> {
  const { store, clock, maxReplays, repairRulesFor, approval } = planner
  checkFilter(filter)
  const { by, reason, input, limits, expiresInMs } = readPlanOptions(name, options)
  if (name === 'remove') checkRemoval(filter)
  checkTransform(planner, input)
  if (isDestructive(name) && (by === undefined || reason === undefined))
    throw new RedriveError(
      'INVALID_INPUT',
      `${name} needs \`by\` and \`reason\`: say who does it and why`,
    )
  const id = clock.id()
  const rules = { action: name, input, maxReplays, repairRulesFor }
  const { shares, ineligible, ...selected } = await readLetters(store, filter, rules)
  const { count } = selected
  if (count === 0) throw new RedriveError('INVALID_INPUT', whyEmpty(name, ineligible))
  const preview = name === 'edit' ? await previewEdits(planner, selected.sample, input) : undefined
  await writeChunks(new BulkRecords(store), id, shares)
  const nowMs = clock.now()
  const action: BulkAction = {
    id,
    action: name,
    filter,
    input,
    limits,
    state: 'planned',
    by: by ?? 'operator',
    ...(reason === undefined ? {} : { reason }),
    ...selected,
    ...(preview ? { preview } : {}),
    ineligible,
    progress: { ...noProgress, pending: count },
    ...(approval && count > approval.above ? { approval: { above: approval.above } } : {}),
    plannedAt: toTimestamp(nowMs),
    expiresAt: toTimestamp(nowMs + expiresInMs),
  }
  await new BulkRecords(store).create(action)
  return action
}

function whyEmpty(name: BulkActionName, { count, reasons }: Ineligible): string {
  if (count === 0) return 'no letter matches the filter: nothing was planned'
  const causes = Object.entries(reasons).map(([reason, letters]) => `${letters}: ${reason}`)
  return `${name} is possible for none of the ${count} letters that match the filter (${causes.join('; ')})`
}

interface Selection {
  shares: Shares
  count: number
  states: BulkAction['states']
  queues: BulkAction['queues']
  sample: SampleLetter[]
  ineligible: Ineligible
}

/** Reads all letters that match, in the order of capture. */
async function readLetters(
  store: Store,
  filter: LetterFilter,
  rules: EligibilityRules,
): Promise<Selection> {
  const shares: Shares = new Map()
  const sample: SampleLetter[] = []
  const stateCounts = new Map<State, number>()
  const queueCounts = new Map<string, number>()
  const ineligible: Ineligible = { count: 0, reasons: {}, sample: [] }
  const state = filter.state ?? (filter.ids ? undefined : statesFor(rules.action))
  const query = {
    ...filter,
    ...(state ? { state } : {}),
    order: 'oldest',
    limit: maxLimit,
  } as const
  const superseded = new SupersededLetters(store)
  const mayRun = rules.action === 'retry' || rules.action === 'replay'
  const whySuperseded = async (letter: LetterSummary): Promise<string | undefined> =>
    mayRun && !rules.input.includeSuperseded && (await superseded.has(letter))
      ? 'a newer letter of its lane has succeeded: set includeSuperseded to act on it'
      : undefined
  let count = 0
  for (let cursor: string | undefined; ;) {
    const page = await store.find({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    for (const letter of page.items) {
      const why = whyIneligible(letter, rules) ?? (await whySuperseded(letter))
      if (why === undefined) {
        count += 1
        increment(stateCounts, letter.state)
        increment(queueCounts, letter.queue)
        if (sample.length < sampleSize) sample.push(sampleOf(letter))
        shareOf(shares, letter).push(planned(letter, rules.action))
      } else addIneligible(ineligible, letter.id, why)
    }
    if (count > maxLetters)
      throw new RedriveError(
        'INVALID_INPUT',
        `more than ${maxLetters} letters match the filter: plan them in parts, such as by queue or with since and until`,
      )
    if (page.cursor === undefined) break
    cursor = page.cursor
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
