import { readWithDrafts, type StoreContext } from './context.ts'
import { documentOf } from './document.ts'

/** Finds documents of format 1. Drafts have no search fields in any format. */
export const oldFormatQuery = {
  bool: {
    filter: [{ exists: { field: 'status' } }],
    must_not: [{ exists: { field: 'letter_id' } }],
  },
}

/**
 * Rewrites documents of an older format with the current search fields. A document that is changed
 * concurrently is read again; a document that the server rejects stays unchanged.
 */
export async function rewriteOldDocuments(context: StoreContext): Promise<void> {
  await context.letters.refresh()
  for await (const hits of context.letters.pages({
    query: oldFormatQuery,
    // In format 1, `task_id` was the id of the letter.
    sort: [{ task_id: 'asc' }],
    size: 50,
    _source: false,
  })) {
    let left = hits.map(({ id }) => id)
    while (left.length > 0) {
      const letters = [...(await readWithDrafts(context, left)).entries()]
      const results = await context.letters.writeEach(
        letters.map(([id, { record, revision }]) => ({
          id,
          put: documentOf(record),
          expected: revision,
        })),
      )
      left = letters
        .filter((_, at) => !results[at]!.done && !('error' in results[at]!))
        .map(([id]) => id)
    }
  }
}
