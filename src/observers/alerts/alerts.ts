import { checkBy, checkReason } from '../../check/text.ts'
import { nearest } from '../../check/nearest.ts'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { Store } from '../../store.ts'
import { readDeliveries, type Delivery } from '../notify/delivery.ts'
import type { SendResult, Target } from '../notify/target.ts'
import type { AlertChange } from './change.ts'
import { readChanges } from './events.ts'
import { readRuleRecords, updateAlert } from './rule-records.ts'

export interface AlertsOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  targets: Readonly<Record<string, Target>>
  baseUrl?: string | undefined
}

/** A notification in the outbox. */
export type AlertDelivery = Omit<Delivery, 'version'>

/** What a target answered to a test. */
export type TargetTest = { target: string; kind: Target['kind'] } & Pick<
  SendResult,
  'sent' | 'answer'
>

const maxListed = 500

/** What people see of alerts, and do to them. */
export class Alerts {
  readonly #options: AlertsOptions

  constructor(options: AlertsOptions) {
    this.#options = options
  }

  /** Raised alerts of all processes, by name. */
  async raised(): Promise<Alert[]> {
    const stored = await readRuleRecords(this.#options.store.records)
    return [...stored.values()].flatMap(({ state }) => state.alert ?? [])
  }

  /** Alerts that were raised and cleared, the newest first. */
  async history(limit = maxListed): Promise<AlertChange[]> {
    const changes = await readChanges(this.#options.store.records)
    return changes
      .slice(0, checkLimit(limit))
      .map(({ id, at, state, alert }) => ({ id, at, state, alert }))
  }

  /** Notifications that wait or were sent, the newest first. */
  async deliveries(limit = maxListed): Promise<AlertDelivery[]> {
    const all = (await readDeliveries(this.#options.store.records)).toReversed()
    return all.slice(0, checkLimit(limit)).map(({ version: _version, ...delivery }) => delivery)
  }

  /** Ends the reminders of a raised alert until it clears. */
  async acknowledge(name: string, by: string, note?: string): Promise<Alert> {
    const { store, clock } = this.#options
    const acknowledged = {
      by: checkBy(by),
      at: toTimestamp(clock.now()),
      ...(note === undefined ? {} : { note: checkReason(note) }),
    }
    const alert = await updateAlert(store.records, name, (raised) => ({ ...raised, acknowledged }))
    if (alert) return alert
    throw alertNotFound(name)
  }

  /** Sends a test to a target once, and returns what it answered. */
  async test(name: string): Promise<TargetTest> {
    const { clock, targets, baseUrl } = this.#options
    const target = Object.hasOwn(targets, name) ? targets[name] : undefined
    if (!target) throw unknownTarget(name, Object.keys(targets))
    const { sent, answer } = await target.send({
      id: clock.id(),
      at: toTimestamp(clock.now()),
      kind: 'test',
      changes: [],
      stillRaised: [],
      ...(baseUrl === undefined ? {} : { link: baseUrl }),
    })
    return { target: name, kind: target.kind, sent, answer }
  }
}

export function alertNotFound(name: string): RedriveError {
  return new RedriveError(
    'ALERT_NOT_FOUND',
    `there is no raised alert ${JSON.stringify(name.slice(0, 100))}: list the alerts`,
  )
}

function unknownTarget(name: string, known: readonly string[]): RedriveError {
  const given = JSON.stringify(name.slice(0, 100))
  const near = nearest(name, known)
  const advice =
    known.length === 0
      ? 'the configuration has no targets: add notify'
      : near === undefined
        ? `the targets are ${known.join(', ')}`
        : `did you mean ${near}?`
  return new RedriveError('TARGET_NOT_FOUND', `there is no target ${given}: ${advice}`)
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxListed) return limit
  throw new RedriveError(
    'INVALID_INPUT',
    `limit must be an integer from 1 to ${maxListed}, got ${limit}`,
  )
}
