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
 * Letters with all the words, in any order and in any of the fields, best first. The text is words,
 * never a pattern.
 */
export function fullText(text: string, options: SearchOptions): { query: object; size: number } {
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
