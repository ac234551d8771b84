import { oneOf } from '../../app/search-params.ts'

const hourMs = 3_600_000

/** Time ranges of the charts. */
export const ranges = {
  '1h': { label: '1 h', ms: hourMs, step: '5m' },
  '24h': { label: '24 h', ms: 24 * hourMs, step: '15m' },
  '7d': { label: '7 days', ms: 7 * 24 * hourMs, step: '6h' },
  '30d': { label: '30 days', ms: 30 * 24 * hourMs, step: '1d' },
} as const
export type Range = keyof typeof ranges

export const defaultRange: Range = '24h'

export function parseOverviewSearch({ range }: Record<string, unknown>): { range?: Range } {
  const known = oneOf(Object.keys(ranges) as Range[], range)
  return known === undefined ? {} : { range: known }
}
