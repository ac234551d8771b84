import { z } from 'zod'
import { RedriveError } from '../../errors.ts'
import type { Json } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { Standing } from '../../policy/alert-measures.ts'
import type { Records } from '../../store.ts'
import { alertSchema, changeSchema, type AlertChange } from './change.ts'

/** The stored state of one rule. */
export interface Kept {
  /** Version of the record; 0 if there is none. */
  version: number
  standing: Standing
  /** Evaluation interval of the process that wrote the record. */
  everyMs: number
  /** Id of the last change, so that its writer can recognise it. */
  change: string
  /** Changes that are not in the list of events yet, the oldest first. */
  unlisted: AlertChange[]
}

export const unkept: Kept = { version: 0, standing: {}, everyMs: 0, change: '', unlisted: [] }

const alertKind = 'alert'
const pageRecords = 100
/** An alert record without an alert is removed after this time. */
const forgetMs = 2 * 86_400_000
/** Attempts of a change when the record keeps changing concurrently. */
const maxAttempts = 20

const schema = z.object({
  everyMs: z.number(),
  change: z.string(),
  unlisted: z.array(changeSchema).optional(),
  sinceMs: z.number().optional(),
  judged: z.object({ resolved: z.number(), failed: z.number() }).optional(),
  silence: z
    .object({
      count: z.number(),
      sinceMs: z.number(),
      activeMs: z.number(),
      seenMs: z.number(),
      active: z.number(),
      pauses: z.array(z.tuple([z.number(), z.number()])),
    })
    .optional(),
  done: z.literal(true).optional(),
  alert: alertSchema.optional(),
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
  const { everyMs, change, unlisted = [], ...standing } = data
  return { everyMs, change, unlisted, standing: standing as Standing }
}

/** Writes if the record is unchanged since it was read. */
export function writeKept(
  records: Records,
  name: string,
  kept: Kept,
): Promise<'written' | 'conflict'> {
  const { version, standing, everyMs, change, unlisted } = kept
  const pending = unlisted.length === 0 ? {} : { unlisted }
  const value = { ...standing, everyMs, change, ...pending }
  return records.put(alertKind, name, value as unknown as Json, version)
}

/** Changes a raised alert. Returns undefined if there is no raised alert of this name. */
export async function updateAlert(
  records: Records,
  name: string,
  change: (alert: Alert) => Alert,
): Promise<Alert | undefined> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const record = await records.get(alertKind, name)
    if (!record) return undefined
    const kept = parsed(record.value)
    if (!kept.standing.alert) return undefined
    const alert = change(kept.standing.alert)
    const standing = { ...kept.standing, alert }
    const { version } = record
    if ((await writeKept(records, name, { ...kept, version, standing })) === 'written') return alert
  }
  throw new RedriveError('VERSION_CONFLICT', `alert ${name} kept changing: try again`)
}

/**
 * Removes the records of groups whose alert was cleared long ago, so that they do not pile up. The
 * group is not new any more by then.
 */
export async function removeOldKept(records: Records, nowMs: number): Promise<void> {
  let after: string | undefined
  do {
    const from = after === undefined ? {} : { after }
    const page = await records.list(alertKind, { ...from, limit: pageRecords })
    for (const { id, value, updatedAt } of page) {
      const { standing, unlisted } = parsed(value)
      const { alert, silence, judged } = standing
      const isEmpty = !alert && !silence && !judged && unlisted.length === 0
      if (isEmpty && nowMs - toMs(updatedAt) > forgetMs) await records.remove(alertKind, id)
    }
    after = page.length === pageRecords ? page.at(-1)?.id : undefined
  } while (after !== undefined)
}
