import { documentOf, type LightRecord } from './document.ts'
import { hashOf } from './fields.ts'
import { readLetters, type StoreContext, type LaneDocument, type ReadLetter } from './context.ts'
import type { ReadDocument } from './document-index.ts'

/** The first active letter of a lane, and the document of the lane. Either may not exist. */
export interface LaneView {
  head?: LaneHead
  /**
   * Read before the search: if the document is unchanged when the lane is taken, no claim happened
   * in between.
   */
  document?: ReadDocument<LaneDocument>
}

/** The running letter of a lane, otherwise its oldest active one, from a search. */
export interface LaneHead {
  id: string
  running: boolean
  /** Whether the letter waits for others to be resolved. */
  waits: boolean
  dueMs: number
  score: number
}

const documentId = (lane: string): string => `lane:${lane}`

/** Reads lanes by their keys. */
export async function readLanes(
  context: StoreContext,
  lanes: readonly string[],
): Promise<Map<string, LaneView>> {
  if (lanes.length === 0) return new Map()
  const documents = await context.lanes.read(lanes.map(documentId))
  await context.letters.refresh()
  const results = await context.letters.searchAll(
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
      const [hit] = results[at]!
      const document = documents.get(documentId(lane))
      const head = hit && {
        id: hit.id,
        running: hit.source.status === 'retrying',
        waits: hit.source.waits_for !== undefined,
        dueMs: hit.source.due_ms ?? 0,
        score: hit.source.claim_score ?? 0,
      }
      return [lane, { ...(head ? { head } : {}), ...(document ? { document } : {}) }]
    }),
  )
}

/** A lane to be taken for a letter. */
export interface LaneRequest {
  lane: string
  document: ReadDocument<LaneDocument> | undefined
  letter: ReadLetter
}

/**
 * Takes lanes for letters about to be claimed. Returns false for a lane that another letter has, or
 * that changed since its document was read.
 */
export async function takeLanes(
  context: StoreContext,
  requests: readonly LaneRequest[],
): Promise<boolean[]> {
  const holders = await readLetters(
    context,
    requests.flatMap(({ document }) => document?.source.id ?? []),
  )
  const isFree = await Promise.all(requests.map((request) => freeLane(context, request, holders)))
  const free = requests.filter((_, at) => isFree[at])
  const written = await context.lanes.write(
    free.map(({ lane, document, letter: { record } }) => ({
      id: documentId(lane),
      put: { kind: 'lane', id: record.letter.id, epoch: record.letter.epoch + 1 },
      expected: document?.revision ?? 'new',
    })),
  )
  const taken = new Set(free.filter((_, at) => written[at]!.done))
  return requests.map((request) => taken.has(request))
}

/**
 * Returns whether a lane can be taken. If the claim of its last holder was not written, the holder
 * is rewritten first: should that claim still be in progress, its write then fails.
 */
async function freeLane(
  context: StoreContext,
  { document, letter }: LaneRequest,
  holders: ReadonlyMap<string, ReadLetter>,
): Promise<boolean> {
  if (!document || document.source.id === letter.record.letter.id) return true
  const holder = holders.get(document.source.id)
  if (!holder) return true
  const { state, epoch, id } = holder.record.letter
  if (state === 'retrying') return false
  if (epoch >= document.source.epoch) return true
  const put = documentOf(holder.record)
  const [written] = await context.letters.write([{ id, put, expected: holder.revision }])
  return written!.done
}

/** Removes lanes whose last letter was removed, so that lanes used once do not accumulate. */
export async function removeLanes(
  context: StoreContext,
  removed: readonly LightRecord[],
): Promise<void> {
  const laneIds = new Map(
    removed.flatMap(({ letter: { id, queue, lane } }): [string, string][] =>
      lane === undefined ? [] : [[id, documentId(hashOf(queue, lane))]],
    ),
  )
  const documents = await context.lanes.read(laneIds.values())
  const unused = [...documents.values()].filter(({ id, source }) => laneIds.get(source.id) === id)
  await context.lanes.write(
    unused.map(({ id, revision }) => ({ id, drop: true, expected: revision })),
  )
}
