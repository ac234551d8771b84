import { readWithDrafts, type StoreContext } from './context.ts'
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
 * Rewrites documents of an older form with the current search fields. A document that is changed
 * meanwhile is read again; one that the server rejects stays unchanged.
 */
export async function rewriteOldDocuments(context: StoreContext): Promise<void> {
  await context.letters.refresh()
  let after: (string | number)[] | undefined
  do {
    const { hits } = await context.letters.search({
      query: oldForm,
      // In form 1 this was the id of the letter.
      sort: [{ task_id: 'asc' }],
      size: pageSize,
      _source: false,
      ...(after ? { search_after: after } : {}),
    })
    let left = hits.map(({ id }) => id)
    while (left.length > 0) {
      const found = [...(await readWithDrafts(context, left)).entries()]
      const written = await context.letters.attempt(
        found.map(([id, { record, mark }]) => ({ id, put: documentOf(record), at: mark })),
      )
      left = found
        .filter((_, at) => !written[at]!.done && !('fault' in written[at]!))
        .map(([id]) => id)
    }
    after = hits.length === pageSize ? hits.at(-1)!.place : undefined
  } while (after)
}
