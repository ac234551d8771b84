import { documentOf, type Light } from './document.ts'
import { hashOf } from './fields.ts'
import { readLetters, type StoreContext, type LaneDocument, type ReadLetter } from './context.ts'
import type { Found } from './document-index.ts'

/**
 * The running letter of a lane, or else its oldest, as a search shows it, and the holder of the
 * lane.
 */
export interface LaneView {
  head?: Head
  /**
   * Read before the search: if it is unchanged when the lane is taken, no claim happened in
   * between.
   */
  seen?: Found<LaneDocument>
}

export interface Head {
  id: string
  running: boolean
  waits: boolean
  dueMs: number
  score: number
}

const documentId = (lane: string): string => `lane:${lane}`

/** The first letter of each lane, by the key of the lane. */
export async function viewLanes(
  context: StoreContext,
  lanes: readonly string[],
): Promise<Map<string, LaneView>> {
  if (lanes.length === 0) return new Map()
  const seen = await context.lanes.read(lanes.map(documentId))
  await context.letters.refresh()
  const answers = await context.letters.searches(
    lanes.map((lane) => ({
      query: {
        bool: {
          filter: [{ term: { lane_key: lane } }, { terms: { status: ['pending', 'retrying'] } }],
        },
      },
      // In alphabetical order, `retrying` comes after `pending`.
      sort: [{ status: 'desc' }, { letter_id: 'asc' }],
      size: 1,
      _source: ['status', 'waits_for', 'due_ms', 'claim_score'],
    })),
  )
  return new Map(
    lanes.map((lane, at): [string, LaneView] => {
      const [hit] = answers[at]!.hits
      const had = seen.get(documentId(lane))
      const head = hit && {
        id: hit.id,
        running: hit.source.status === 'retrying',
        waits: hit.source.waits_for !== undefined,
        dueMs: hit.source.due_ms ?? 0,
        score: hit.source.claim_score ?? 0,
      }
      return [lane, { ...(head ? { head } : {}), ...(had ? { seen: had } : {}) }]
    }),
  )
}

/**
 * Takes lanes for letters about to be claimed, each in the state that was read. False: another
 * letter has it, or another process was faster. A lane taken for a claim that is not written (yet)
 * is taken over only after that letter was rewritten, so that the other claim, if still in
 * progress, fails.
 */
export async function takeLanes(
  context: StoreContext,
  wanted: readonly { lane: string; seen: Found<LaneDocument> | undefined; standing: ReadLetter }[],
): Promise<boolean[]> {
  const holders = await readLetters(
    context,
    wanted.flatMap(({ seen }) => seen?.source.id ?? []),
  )
  const free = await Promise.all(
    wanted.map(({ seen, standing }) => isFree(context, seen, standing, holders)),
  )
  const taking = wanted.filter((_, at) => free[at])
  const written = await context.lanes.write(
    taking.map(({ lane, seen, standing: { record } }) => ({
      id: documentId(lane),
      put: { kind: 'lane', id: record.letter.id, epoch: record.letter.epoch + 1 },
      at: seen?.mark ?? 'new',
    })),
  )
  const taken = new Set(taking.filter((_, at) => written[at]!.done))
  return wanted.map((one) => taken.has(one))
}

async function isFree(
  context: StoreContext,
  seen: Found<LaneDocument> | undefined,
  standing: ReadLetter,
  holders: ReadonlyMap<string, ReadLetter>,
): Promise<boolean> {
  if (!seen || seen.source.id === standing.record.letter.id) return true
  const holder = holders.get(seen.source.id)
  if (!holder) return true
  const { state, epoch, id } = holder.record.letter
  if (state === 'retrying') return false
  if (epoch >= seen.source.epoch) return true
  const put = documentOf(holder.record)
  const [touched] = await context.letters.write([{ id, put, at: holder.mark }])
  return touched!.done
}

/** Removes lanes whose last letter is deleted, so that lanes used once do not accumulate. */
export async function forgetLanes(context: StoreContext, gone: readonly Light[]): Promise<void> {
  const ids = new Map(
    gone.flatMap(({ letter: { id, queue, lane } }): [string, string][] =>
      lane === undefined ? [] : [[id, documentId(hashOf(queue, lane))]],
    ),
  )
  const found = await context.lanes.read(ids.values())
  const over = [...found.values()].filter(({ id, source }) => ids.get(source.id) === id)
  await context.lanes.write(over.map(({ id, mark }) => ({ id, drop: true, at: mark })))
}
