import { z } from 'zod'
import { RedriveError } from '../../errors.ts'
import type { Json } from '../../letter/letter.ts'
import { toMs } from '../../letter/time.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { RuleState } from '../../policy/alert-measures.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { alertSchema, changeSchema, type AlertChange } from './change.ts'

/** The record of one rule: its state, and changes that are not listed yet. */
export interface RuleRecord {
  /** Version of the record; 0 if there is none. */
  version: number
  state: RuleState
  /** Evaluation interval of the process that wrote the record. */
  everyMs: number
  /** Id of the last change, so that its writer can recognise it. */
  change: string
  /** Changes that are not in the list of events yet, the oldest first. */
  unlisted: AlertChange[]
}

/** Stands for a record that does not exist. */
export const noRecord: RuleRecord = { version: 0, state: {}, everyMs: 0, change: '', unlisted: [] }

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

/** The records by rule name. A record that cannot be read counts as empty. */
export async function readRuleRecords(records: Records): Promise<Map<string, RuleRecord>> {
  const found = new Map<string, RuleRecord>()
  for await (const { id, version, value } of eachRecord(records))
    found.set(id, { ...parseRecord(value), version })
  return found
}

async function* eachRecord(records: Records): AsyncGenerator<DocumentRecord> {
  let page: DocumentRecord[] = []
  do {
    const last = page.at(-1)
    const query = { limit: pageRecords, ...(last ? { after: last.id } : {}) }
    page = await records.list(alertKind, query)
    yield* page
  } while (page.length === pageRecords)
}

function parseRecord(value: Json): Omit<RuleRecord, 'version'> {
  const { success, data } = schema.safeParse(value)
  if (!success) return noRecord
  const { everyMs, change, unlisted = [], ...state } = data
  return { everyMs, change, unlisted, state: state as RuleState }
}

/** Writes if the record is unchanged since it was read. */
export function writeRuleRecord(
  records: Records,
  name: string,
  { version, state, everyMs, change, unlisted }: RuleRecord,
): Promise<'written' | 'conflict'> {
  const pending = unlisted.length === 0 ? {} : { unlisted }
  const value = { ...state, everyMs, change, ...pending }
  return records.put(alertKind, name, value as unknown as Json, version)
}

/** Changes a raised alert. Returns undefined if there is no raised alert of this name. */
export async function updateAlert(
  records: Records,
  name: string,
  change: (alert: Alert) => Alert,
): Promise<Alert | undefined> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const found = await records.get(alertKind, name)
    if (!found) return undefined
    const record = { ...parseRecord(found.value), version: found.version }
    if (!record.state.alert) return undefined
    const alert = change(record.state.alert)
    const changed = { ...record, state: { ...record.state, alert } }
    if ((await writeRuleRecord(records, name, changed)) === 'written') return alert
  }
  throw new RedriveError('VERSION_CONFLICT', `alert ${name} kept changing: try again`)
}

/**
 * Removes the records of groups whose alert was cleared long ago, so that they do not pile up. The
 * group is not new any more by then.
 */
export async function removeOldRuleRecords(records: Records, nowMs: number): Promise<void> {
  for await (const { id, value, updatedAt } of eachRecord(records)) {
    const { state, unlisted } = parseRecord(value)
    const { alert, silence, judged } = state
    const isEmpty = !alert && !silence && !judged && unlisted.length === 0
    if (isEmpty && nowMs - toMs(updatedAt) > forgetMs) await records.remove(alertKind, id)
  }
}
