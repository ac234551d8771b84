import { checkSearch } from '../../check/filter.ts'
import type { SearchOptions } from '../../store.ts'
import { conditionsOf } from './filter.ts'

const failureFields = [
  'error',
  'last_error',
  'error_name',
  'stack',
  'error_code',
  'queue',
  'task_id.text',
]

/**
 * Builds a query for letters with all the words of the text, in any order and in any of the fields,
 * best first. Special characters of the text have no meaning.
 */
export function buildTextQuery(
  text: string,
  options: SearchOptions,
): { query: object; size: number } {
  checkSearch(text, options)
  const { payload = false, limit = 50, among = {} } = options
  const fields = payload ? [...failureFields, 'payload_text'] : failureFields
  const words = {
    multi_match: {
      query: text.toWellFormed(),
      fields,
      type: 'cross_fields',
      operator: 'and',
      analyzer: 'standard',
    },
  }
  return { query: { bool: { must: [words], ...conditionsOf(among).bool } }, size: limit }
}
