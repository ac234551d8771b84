import { checkFilter } from '../../check/filter.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { maxLimit, type LetterFilter } from '../../letter/query.ts'
import type { Store } from '../../store.ts'
import { writeOperationFile } from './write.ts'

/** All matching letters as the text of an operation file. */
export async function exportOperationFile(store: Store, filter: LetterFilter): Promise<string> {
  checkFilter(filter)
  const letters: DeadLetter[] = []
  let cursor: string | undefined
  do {
    const from = cursor === undefined ? {} : { cursor }
    const page = await store.find({
      ...filter,
      ...from,
      order: 'oldest',
      limit: maxLimit,
      payload: true,
    })
    letters.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return writeOperationFile(letters)
}
