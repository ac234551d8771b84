import { z } from 'zod'
import type { Json } from '../../letter/letter.ts'
import { toMs, type Timestamp } from '../../letter/time.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { alertSchema, changeSchema, type AlertChange } from '../alerts/change.ts'

const deliveryStates = ['waiting', 'sending', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** One message to one target, as a record of the outbox. */
export interface Delivery {
  /** Also the id of the message for the receiver. */
  id: string
  version: number
  target: string
  state: DeliveryState
  isDigest: boolean
  /** One change, or those of a digest. */
  changes: AlertChange[]
  /** Digest: the alerts that were still raised at the first attempt. */
  stillRaised: Alert[]
  createdAt: Timestamp
  /** Waiting: the next attempt. Sending: when another process may take over. Else: the end. */
  dueAt: Timestamp
  attempts: number
  /** What the receiver answered last. */
  answer?: string
}

const deliveryKind = 'alert-delivery'
/** Deliveries that are kept after their end. */
export const maxEnded = 500
const maxEndedAgeMs = 30 * 86_400_000

const schema = z.object({
  target: z.string(),
  state: z.enum(deliveryStates),
  isDigest: z.boolean(),
  changes: z.array(changeSchema),
  stillRaised: z.array(alertSchema),
  createdAt: z.string(),
  dueAt: z.string(),
  attempts: z.number(),
  answer: z.string().exactOptional(),
})

/** All deliveries, the oldest first. Unreadable records are left out. */
export async function readDeliveries(records: Records): Promise<Delivery[]> {
  const all = await records.list(deliveryKind)
  return all.flatMap(toDelivery).toSorted((a, b) => compare(a.createdAt, b.createdAt))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function toDelivery({ id, version, value }: DocumentRecord): Delivery[] {
  const { success, data } = schema.safeParse(value)
  return success ? [{ ...data, id, version }] : []
}

/** Writes if the record has the version of the delivery; 0: it does not exist yet. */
export async function writeDelivery(
  records: Records,
  delivery: Delivery,
): Promise<Delivery | undefined> {
  const { id, version, ...value } = delivery
  const result = await records.put(deliveryKind, id, value as unknown as Json, version)
  return result === 'written' ? { ...delivery, version: version + 1 } : undefined
}

export function isEnded({ state }: Delivery): boolean {
  return state === 'delivered' || state === 'failed'
}

/**
 * Removes deliveries that ended long ago, and the oldest beyond the limit. Those of the current
 * reminders stay: without their record, they would be sent again.
 */
export async function removeOldDeliveries(
  records: Records,
  deliveries: readonly Delivery[],
  nowMs: number,
  reminders: ReadonlySet<string>,
): Promise<void> {
  const ended = deliveries.filter(isEnded).toReversed()
  for (const [index, { id, dueAt, changes }] of ended.entries()) {
    const isOld = index >= maxEnded || nowMs - toMs(dueAt) > maxEndedAgeMs
    const isCurrent = changes.some((change) => reminders.has(change.id))
    if (isOld && !isCurrent) await records.remove(deliveryKind, id)
  }
}
