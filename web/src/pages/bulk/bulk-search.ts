import { outcomes } from 'redrive/api'
import { someOf } from '../../app/search-params.ts'

export interface BulkActionsSearch {
  /** Also plans that nobody ran. */
  plans?: 'all'
}

export function parseBulkActionsSearch(search: Record<string, unknown>): BulkActionsSearch {
  return search['plans'] === 'all' ? { plans: 'all' } : {}
}

export interface BulkActionSearch {
  /** Only results with these outcomes. */
  outcome?: (typeof outcomes)[number][]
}

export function parseBulkActionSearch(search: Record<string, unknown>): BulkActionSearch {
  const outcome = someOf(outcomes, search['outcome'])
  return outcome.length > 0 ? { outcome } : {}
}
