import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { matches, sortKey } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import { toText } from '../../backends/redis/connection.ts'
import { decodeLetter, decodeSummary } from '../rows/decode.ts'
import { comparePlaces, keyless, keyTime, timeKey } from '../rows/plan.ts'
import type { Found, Stage, Step, StepRequest } from '../rows/plan.ts'
import { needsReading } from '../rows/source-key.ts'
import type { Place } from '../search.ts'
import type { StoreContext } from './context.ts'
import { loadLetter, type Hint, type Parts } from './decode.ts'
import { fetchLetters, type Extent } from './fetch-letters.ts'
import { fieldFilter, groupKeys, hintOf, type SearchPlan } from './plan-search.ts'
import { scripts } from './scripts.ts'

export type Letter = DeadLetter | LetterSummary

/**
 * Index entries that one script reads, so that no script blocks the server for long. Reading
 * letters costs more than reading some of their fields.
 */
const stepEntries = 500
const readStepEntries = 200

/** A step ends early past this number of payload bytes. */
const maxStepBytes = 8 * 2 ** 20

/** Reads the next letters of a stage. */
export async function readStep(
  context: StoreContext,
  plan: SearchPlan,
  request: StepRequest<string>,
  extent: Extent,
): Promise<Step<Letter>> {
  const [first] = request.stage.ranges
  if (first?.index === 'ids') return readByIds(context, plan, first.ids, request, extent)
  const steps = await Promise.all(
    groupKeys(plan, request.stage).map((keys) => scanKeys(context, plan, keys, request, extent)),
  )
  return steps.length === 1 ? steps[0]! : mergeSteps(steps, request)
}

/** Reads letters by id, sorts them, and returns those after the position. */
async function readByIds(
  context: StoreContext,
  { filter, order }: SearchPlan,
  ids: readonly string[],
  request: StepRequest<string>,
  extent: Extent,
): Promise<Step<Letter>> {
  const found: Found<Letter>[] = []
  const { stage, after } = request
  for (const { id, parts, waits } of await fetchLetters(context.connection, ids, extent)) {
    const item = decode(id, parts, extent)
    const isDependent = waits.length > 0
    if (!matches(item, filter) || (filter.dependent ?? isDependent) !== isDependent) continue
    const key = stage.key === 'id' ? id : computedKey(sortKey(item, order))
    const place = { key, id }
    if (!after || comparePlaces(place, after, stage.isDown) > 0)
      found.push({ place, item, bytes: bytesOf(item) })
  }
  return cutStep(found, request)
}

/** A time as in the keys of other stages. */
function computedKey(key: string): string {
  return key === keyless ? key : timeKey(toMs(key))
}

function decode(id: string, parts: Parts, extent: Extent, hint?: Hint): Letter {
  const loaded = loadLetter(id, parts, hint)
  return extent === 'whole' ? decodeLetter(loaded) : decodeSummary(loaded)
}

function bytesOf({ payload }: Letter): number {
  return 'bytes' in payload ? payload.bytes.length : 0
}

/** The arguments of one step of a scan. See `scanning` in lua/scan.ts. */
function scanArguments(
  { filter, order }: SearchPlan,
  keys: readonly string[],
  { stage, after, wanted }: StepRequest<string>,
): object {
  const by = stage.key === 'due' || stage.key === 'settled' ? 'time' : 'id'
  // An empty id is the start.
  const from =
    after && after.id !== '' ? [by === 'id' ? 0 : keyTime(after.key) || 0, after.id] : false
  const { settledBefore } = filter
  return {
    keys,
    by,
    need: needOf(stage, order),
    before:
      stage.key === 'settled' && settledBefore !== undefined ? toMs(settledBefore) : undefined,
    desc: stage.isDown,
    after: from,
    limit: wanted,
    most: needsReading(filter) ? readStepEntries : stepEntries,
    bytes: maxStepBytes,
    filter: fieldFilter(filter),
  }
}

/** A condition on letters of zsets that contain others as well. */
function needOf({ key }: Stage<string>, order: SearchPlan['order']): string | undefined {
  if (key === 'due') return 'retry'
  if (key === 'settled') return 'settled'
  if (key === 'none') return order === 'due' ? 'no retry' : 'not settled'
  return undefined
}

type FindReply = [
  more: number,
  lastAt: Buffer | null,
  lastId: Buffer | null,
  lost: number,
  letters: [id: Buffer, time: Buffer | null, key: number, ...parts: Parts][],
]

async function scanKeys(
  { connection, lostWrites }: StoreContext,
  plan: SearchPlan,
  keys: readonly string[],
  request: StepRequest<string>,
  extent: Extent,
): Promise<Step<Letter>> {
  const spec = { ...scanArguments(plan, keys, request), extent }
  const reply = await connection.run(scripts.find, [JSON.stringify(spec)])
  const [more, lastAt, lastId, lost, letters] = reply as FindReply
  lostWrites.addStrays(lost)
  const placeOf = (id: string, time: Buffer | null): Place => {
    if (time !== null) return { id, key: timeKey(Number(toText(time))) }
    return { id, key: request.stage.key === 'none' ? keyless : id }
  }
  const found: Found<Letter>[] = []
  for (const [id, time, n, ...parts] of letters) {
    const item = decode(toText(id), parts, extent, hintOf(keys[n - 1]!))
    if (!matches(item, plan.filter)) continue
    found.push({ place: placeOf(item.id, time), item, bytes: bytesOf(item) })
  }
  return more === 0 || lastId === null
    ? { found }
    : { found, next: placeOf(toText(lastId), lastAt) }
}

/** Merges the steps of several groups. The result reaches only as far as the slowest group. */
function mergeSteps(steps: Step<Letter>[], request: StepRequest<string>): Step<Letter> {
  const { isDown } = request.stage
  let reach: Place | undefined
  for (const { next } of steps)
    if (next && (!reach || comparePlaces(next, reach, isDown) < 0)) reach = next
  const found = steps
    .flatMap((step) => step.found)
    .filter(({ place }) => !reach || comparePlaces(place, reach, isDown) <= 0)
  const step = cutStep(found, request)
  return step.next || !reach ? step : { ...step, next: reach }
}

function cutStep(found: Found<Letter>[], { stage, wanted }: StepRequest<string>): Step<Letter> {
  found.sort((a, b) => comparePlaces(a.place, b.place, stage.isDown))
  if (found.length <= wanted) return { found }
  return { found: found.slice(0, wanted), next: found[wanted - 1]!.place }
}
