import { oneOf } from '../../app/search-params.ts'

const payloadViews = ['tree', 'text', 'hex'] as const
export type PayloadViewName = (typeof payloadViews)[number]

/** The part of the page that the address has. */
export interface LetterSearch {
  /** How the payload is shown. Default: the best one for its type. */
  view?: PayloadViewName
}

export function parseLetterSearch(search: Record<string, unknown>): LetterSearch {
  const view = oneOf(payloadViews, search['view'])
  return view ? { view } : {}
}
