import { z } from 'zod'
import type { Json } from '../../letter/letter.ts'
import { alertMetrics, type Standing } from '../../policy/alerts.ts'
import type { Records } from '../../store.ts'

/** The stored state of one rule. */
export interface Kept {
  /** Version of the record; 0 if there is none. */
  version: number
  standing: Standing
  /** Evaluation interval of the process that wrote the record. */
  everyMs: number
  /** Id of the last change, so that its writer can recognise it. */
  change: string
}

export const unkept: Kept = { version: 0, standing: {}, everyMs: 0, change: '' }

const alertKind = 'alert'
const pageRecords = 100

const schema = z.object({
  everyMs: z.number(),
  change: z.string(),
  sinceMs: z.number().optional(),
  judged: z.object({ resolved: z.number(), failed: z.number() }).optional(),
  alert: z
    .object({
      name: z.string(),
      severity: z.enum(['warning', 'critical']),
      metric: z.enum([...alertMetrics, 'breaker-open']),
      value: z.number(),
      above: z.number().optional(),
      below: z.number().optional(),
      queue: z.string().optional(),
      summary: z.string(),
      hint: z.string().optional(),
      raisedAt: z.string(),
    })
    .optional(),
})

/** The stored states by rule name. A record that cannot be read counts as empty. */
export async function readKept(records: Records): Promise<Map<string, Kept>> {
  const kept = new Map<string, Kept>()
  let after: string | undefined
  do {
    const from = after === undefined ? {} : { after }
    const page = await records.list(alertKind, { ...from, limit: pageRecords })
    for (const { id, version, value } of page) kept.set(id, { ...parsed(value), version })
    after = page.length === pageRecords ? page.at(-1)?.id : undefined
  } while (after !== undefined)
  return kept
}

function parsed(value: Json): Omit<Kept, 'version'> {
  const { success, data } = schema.safeParse(value)
  if (!success) return unkept
  const { everyMs, change, ...standing } = data
  return { everyMs, change, standing: standing as Standing }
}

/** Writes if the record is unchanged since it was read. */
export function writeKept(
  records: Records,
  name: string,
  kept: Kept,
): Promise<'written' | 'conflict'> {
  const { version, standing, everyMs, change } = kept
  return records.put(alertKind, name, { ...standing, everyMs, change } as unknown as Json, version)
}
