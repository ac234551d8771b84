import { z } from 'zod'
import { checkFilter } from '../check/filter.ts'
import { checkSchema, schemaFor } from '../check/issues.ts'
import { maxLimit, type LetterFilter } from '../letter/query.ts'
import { optionsShape, policyShape } from '../options/schema.ts'
import {
  Backtest,
  type BacktestChange,
  type BacktestContext,
  type BacktestReport,
} from '../policy/backtest.ts'
import type { Store } from '../store.ts'

export interface BacktestInput extends BacktestChange {
  /** Letters to read, the newest first, from 1 to 100,000. Default: 10,000. */
  limit?: number
}

const inputSchema = schemaFor<BacktestInput>({
  rules: optionsShape.rules,
  policy: policyShape.backoff,
  maxRetries: policyShape.maxRetries,
  maxRetriesByCategory: policyShape.maxRetriesByCategory,
  limit: z.int().min(1).max(100_000).optional(),
})

/** Reads matching letters, and reports what a change would have done to them. */
export async function runBacktest(
  store: Store,
  context: BacktestContext,
  input: BacktestInput,
  filter: LetterFilter,
): Promise<BacktestReport> {
  checkSchema(inputSchema, input, { thing: 'backtest option', code: 'INVALID_INPUT' })
  checkFilter(filter)
  const { limit = 10_000, ...change } = input
  const backtest = new Backtest(change, context)
  let left = limit
  for (let cursor: string | undefined; ;) {
    const page = await store.find({
      ...filter,
      order: 'newest',
      limit: Math.min(left, maxLimit),
      ...(cursor === undefined ? {} : { cursor }),
    })
    for (const letter of page.items) backtest.add(letter)
    left -= page.items.length
    if (page.cursor === undefined || left <= 0) return backtest.report(page.cursor === undefined)
    cursor = page.cursor
  }
}
