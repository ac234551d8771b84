import { withDrafts, type Desk } from './desk.ts'
import { documentOf } from './document.ts'

const pageSize = 50

/** Documents of form 1. Drafts have no fields in any form. */
export const oldForm = {
  bool: {
    filter: [{ exists: { field: 'status' } }],
    must_not: [{ exists: { field: 'letter_id' } }],
  },
}

/**
 * Writes documents of an older form anew, with the fields that they are now found by. One that somebody else changes meanwhile is looked at
 * again; one that the server refuses stays as it is.
 */
export async function rewriteOld(desk: Desk): Promise<void> {
  await desk.letters.refresh()
  let after: (string | number)[] | undefined
  do {
    const { hits } = await desk.letters.search({
      query: oldForm,
      // In form 1 this was the id of the letter.
      sort: [{ task_id: 'asc' }],
      size: pageSize,
      _source: false,
      ...(after ? { search_after: after } : {}),
    })
    let left = hits.map(({ id }) => id)
    while (left.length > 0) {
      const found = [...(await withDrafts(desk, left)).entries()]
      const written = await desk.letters.attempt(
        found.map(([id, { kept, mark }]) => ({ id, put: documentOf(kept), at: mark })),
      )
      left = found
        .filter((_, at) => !written[at]!.done && !('fault' in written[at]!))
        .map(([id]) => id)
    }
    after = hits.length === pageSize ? hits.at(-1)!.place : undefined
  } while (after)
}
