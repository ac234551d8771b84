import { documentOf, type Light } from './document.ts'
import { hashOf } from './fields.ts'
import { lettersNow, type Desk, type LaneDocument, type Standing } from './desk.ts'
import type { Found } from './shelf.ts'

/** The letter of a lane that runs, or else its oldest, as a search shows it, and who has the lane. */
export interface LaneView {
  head?: Head
  /** Read before the search: if it is still so when the lane is taken, no claim has come in between. */
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

/** The first of each lane, by the key of the lane. */
export async function viewLanes(
  desk: Desk,
  lanes: readonly string[],
): Promise<Map<string, LaneView>> {
  if (lanes.length === 0) return new Map()
  const seen = await desk.lanes.read(lanes.map(documentId))
  await desk.letters.refresh()
  const answers = await desk.letters.searches(
    lanes.map((lane) => ({
      query: {
        bool: {
          filter: [{ term: { lane_key: lane } }, { terms: { status: ['pending', 'retrying'] } }],
        },
      },
      // In the order of words, a letter that is retrying comes after all that are pending.
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
 * Takes lanes for letters that are about to be claimed, each as it was seen. False: someone else has it, or was faster. A
 * lane that was taken for a claim that has not been written (yet) is taken over only after that letter was written anew,
 * so that the other claim, should it still be under way, no longer finds it as it was.
 */
export async function takeLanes(
  desk: Desk,
  wanted: readonly { lane: string; seen: Found<LaneDocument> | undefined; standing: Standing }[],
): Promise<boolean[]> {
  const holders = await lettersNow(
    desk,
    wanted.flatMap(({ seen }) => seen?.source.id ?? []),
  )
  const free = await Promise.all(
    wanted.map(({ seen, standing }) => isFree(desk, seen, standing, holders)),
  )
  const taking = wanted.filter((_, at) => free[at])
  const written = await desk.lanes.write(
    taking.map(({ lane, seen, standing: { kept } }) => ({
      id: documentId(lane),
      put: { kind: 'lane', id: kept.letter.id, epoch: kept.letter.epoch + 1 },
      at: seen?.mark ?? 'new',
    })),
  )
  const taken = new Set(taking.filter((_, at) => written[at]!.done))
  return wanted.map((one) => taken.has(one))
}

async function isFree(
  desk: Desk,
  seen: Found<LaneDocument> | undefined,
  standing: Standing,
  holders: ReadonlyMap<string, Standing>,
): Promise<boolean> {
  if (!seen || seen.source.id === standing.kept.letter.id) return true
  const holder = holders.get(seen.source.id)
  if (!holder) return true
  const { state, epoch, id } = holder.kept.letter
  if (state === 'retrying') return false
  if (epoch >= seen.source.epoch) return true
  const put = documentOf(holder.kept)
  const [touched] = await desk.letters.write([{ id, put, at: holder.mark }])
  return touched!.done
}

/** Forgets lanes whose last letter is gone, so that lanes which are used once do not gather for ever. */
export async function forgetLanes(desk: Desk, gone: readonly Light[]): Promise<void> {
  const ids = new Map(
    gone.flatMap(({ letter: { id, queue, lane } }): [string, string][] =>
      lane === undefined ? [] : [[id, documentId(hashOf(queue, lane))]],
    ),
  )
  const found = await desk.lanes.read(ids.values())
  const over = [...found.values()].filter(({ id, source }) => ids.get(source.id) === id)
  await desk.lanes.write(over.map(({ id, mark }) => ({ id, drop: true, at: mark })))
}
