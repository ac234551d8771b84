import type { Clock } from '../../clock/clock.ts'
import { Repeater } from '../../clock/repeater.ts'
import { toMs, toTimestamp } from '../../letter/time.ts'
import type { ObserverHub } from '../../observer.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { Store } from '../../store.ts'
import type { AlertChange } from '../alerts/change.ts'
import { markQueued, maxUnsentAgeMs, readChanges } from '../alerts/events.ts'
import { readRuleRecords } from '../alerts/rule-records.ts'
import {
  isEnded,
  readDeliveries,
  removeOldDeliveries,
  writeDelivery,
  type Delivery,
} from './delivery.ts'
import type { Notification, SendResult, Target } from './target.ts'

export interface OutboxOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  hub: ObserverHub
  targets: Readonly<Record<string, Target>>
  /** Maximum time between two rounds. */
  everyMs: number
  /** URL of the server, for links. */
  baseUrl?: string | undefined
}

/** Attempts of a delivery, over 3 to 6 hours: delays are half random. */
export const maxAttempts = 12
const firstRetryMs = 10_000
const retryFactor = 3
const maxRetryMs = 3_600_000
/** After this time another process takes over a delivery whose sender died. */
export const takeOverMs = 120_000
/** A delivery to a target that no process has fails so long after it was due. */
const unknownTargetMs = 7 * 86_400_000
const minPauseMs = 1000
/** Messages that are sent to one target in a round. */
const perRound = 20
/** Changes in one digest. */
const maxDigest = 200

/**
 * Sends notifications at least once. Every change of an alert is in the list of events; this makes
 * a delivery record of it for each target, and sends those that are due. The id of a delivery is
 * that of its change and its target, so that a repetition after a crash creates no second one. A
 * process claims a delivery by compare-and-set before it sends it; if the process dies, another one
 * sends the delivery again with the same id. After the last attempt the delivery has failed, and
 * stays visible.
 */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #repeater: Repeater

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#repeater = new Repeater({ clock: options.clock, round: () => this.#round() })
  }

  /** Starts a round at once, and then whenever a delivery is due. Safe to call twice. */
  start(): void {
    if (Object.keys(this.#options.targets).length > 0) this.#repeater.start()
  }

  /** Starts the next round now. */
  wake(): void {
    this.#repeater.wake()
  }

  /** Waits for the messages in flight. Safe to call twice. */
  stop(): Promise<void> {
    return this.#repeater.stop()
  }

  async #round(): Promise<number> {
    const { hub, clock, everyMs } = this.#options
    try {
      await this.#queueChanges()
      const reminders = await this.#queueReminders()
      const before = await readDeliveries(this.#options.store.records)
      const after = await this.#send(before)
      await removeOldDeliveries(this.#options.store.records, before, clock.now(), reminders)
      // More may be due than one round sends, and a message may have waited for one that was sent.
      if (after.some((delivery) => !before.includes(delivery))) return minPauseMs
      const pauses = after
        .filter((one) => !isEnded(one) && Object.hasOwn(this.#options.targets, one.target))
        .map(({ dueAt }) => toMs(dueAt) - clock.now())
        .filter((ms) => ms > 0)
      return Math.max(minPauseMs, Math.min(everyMs, ...pauses))
    } catch (error) {
      hub.emit({ type: 'error', during: 'sending notifications', error })
      return everyMs
    }
  }

  /** A change is marked after its deliveries are written: a crash in between repeats them. */
  async #queueChanges(): Promise<void> {
    const { store, clock, targets } = this.#options
    const nowMs = clock.now()
    const changes = await readChanges(store.records)
    for (const change of changes.toReversed()) {
      if (change.queued) continue
      if (nowMs - toMs(change.at) <= maxUnsentAgeMs)
        for (const [name, target] of Object.entries(targets))
          await this.#queue(change, name, target)
      await markQueued(store.records, change)
    }
  }

  /**
   * The number of the reminder is part of its id, so that all processes create it once. Returns the
   * ids of the current reminders.
   */
  async #queueReminders(): Promise<Set<string>> {
    const current = new Set<string>()
    const { store, clock, targets } = this.#options
    const reminding = Object.entries(targets).filter(([, { remindMs }]) => remindMs !== undefined)
    if (reminding.length === 0) return current
    const deliveries = await readDeliveries(store.records)
    const queued = new Set(
      deliveries.flatMap(({ target, changes }) => changes.map(({ id }) => `${target} ${id}`)),
    )
    const nowMs = clock.now()
    for (const { state, change } of (await readRuleRecords(store.records)).values()) {
      const { alert } = state
      if (!alert || alert.acknowledged) continue
      for (const [name, target] of reminding) {
        const number = Math.floor((nowMs - toMs(alert.raisedAt)) / target.remindMs!)
        const id = `${change}-r${number}`
        const reminder = { id, at: toTimestamp(nowMs), state: 'reminder', alert } as const
        if (number < 1) continue
        current.add(id)
        if (!queued.has(`${name} ${id}`)) await this.#queue(reminder, name, target)
      }
    }
    return current
  }

  async #queue(given: AlertChange, name: string, target: Target): Promise<void> {
    const change = target.content ? given : withoutTitle(given)
    if (target.digestMs !== undefined && change.alert.severity !== 'critical')
      return this.#addToDigest(change, name, target.digestMs)
    await writeDelivery(this.#options.store.records, {
      ...this.#newDelivery(name, change),
      id: `${change.id}.${name}`,
    })
  }

  #newDelivery(target: string, change: AlertChange): Omit<Delivery, 'id'> {
    const now = toTimestamp(this.#options.clock.now())
    return {
      version: 0,
      target,
      state: 'waiting',
      isDigest: false,
      changes: [change],
      stillRaised: [],
      createdAt: now,
      dueAt: now,
      attempts: 0,
    }
  }

  /** Adds a change to the digest that waits, or to a new one. A sent digest does not change. */
  async #addToDigest(change: AlertChange, target: string, digestMs: number): Promise<void> {
    const { store, clock } = this.#options
    for (;;) {
      const deliveries = await readDeliveries(store.records)
      const own = deliveries.filter((one) => one.target === target && one.isDigest)
      if (own.some(({ changes }) => changes.some(({ id }) => id === change.id))) return
      const open = own.find(
        ({ state, attempts, changes }) =>
          state === 'waiting' && attempts === 0 && changes.length < maxDigest,
      )
      const dueAt = toTimestamp(clock.now() + digestMs)
      const id = `${change.id}.${target}.digest`
      const delivery = open
        ? { ...open, changes: [...open.changes, change] }
        : { ...this.#newDelivery(target, change), id, isDigest: true, dueAt }
      if (await writeDelivery(store.records, delivery)) return
    }
  }

  /** Returns the deliveries as they are afterwards. */
  async #send(deliveries: readonly Delivery[]): Promise<Delivery[]> {
    const { clock, targets } = this.#options
    const nowMs = clock.now()
    const after = new Map(deliveries.map((one) => [one.id, one]))
    await Promise.all(
      Object.entries(targets).map(async ([name, target]) => {
        const own = deliveries.filter((one) => one.target === name && !isEnded(one))
        for (const sent of await this.#sendInOrder(own, target)) after.set(sent.id, sent)
      }),
    )
    for (const delivery of after.values())
      if (
        !isEnded(delivery) &&
        !Object.hasOwn(targets, delivery.target) &&
        nowMs - toMs(delivery.dueAt) > unknownTargetMs
      )
        await this.#fail(delivery, describeUnknownTarget(delivery))
    return [...after.values()]
  }

  /**
   * Sends what is due. While an earlier message about an alert waits, later ones about it wait too:
   * an alert is never cleared before it is raised. Returns what was sent as it is afterwards.
   */
  async #sendInOrder(deliveries: readonly Delivery[], target: Target): Promise<Delivery[]> {
    const nowMs = this.#options.clock.now()
    const waiting = new Set<string>()
    const sent: Delivery[] = []
    for (const delivery of deliveries) {
      const names = delivery.changes.map(({ alert }) => alert.name)
      const isDue = toMs(delivery.dueAt) <= nowMs && !names.some((name) => waiting.has(name))
      const after =
        isDue && sent.length < perRound ? await this.#deliver(delivery, target) : delivery
      if (after !== delivery) sent.push(after)
      if (!isEnded(after)) for (const name of names) waiting.add(name)
    }
    return sent
  }

  /** Returns the delivery as it is afterwards. */
  async #deliver(delivery: Delivery, target: Target): Promise<Delivery> {
    const { store, clock, baseUrl } = this.#options
    const claimed = await writeDelivery(store.records, {
      ...delivery,
      state: 'sending',
      attempts: delivery.attempts + 1,
      dueAt: toTimestamp(clock.now() + takeOverMs),
      // Every attempt has the same content.
      stillRaised:
        delivery.attempts === 0 ? await this.#stillRaised(delivery) : delivery.stillRaised,
    })
    // Another process was faster: a later round sees what it did.
    if (!claimed) return { ...delivery, dueAt: toTimestamp(clock.now() + takeOverMs) }
    const { id, createdAt, changes, stillRaised, isDigest } = claimed
    const notification: Notification = {
      id,
      at: createdAt,
      kind: isDigest ? 'digest' : 'alert',
      changes: changes.map(({ state, alert }) => ({ state, alert })),
      stillRaised,
      ...(baseUrl === undefined ? {} : { link: baseUrl }),
    }
    return this.#settle(claimed, await target.send(notification))
  }

  async #stillRaised({ isDigest, changes, target }: Delivery): Promise<Alert[]> {
    if (!isDigest) return []
    const { store, targets } = this.#options
    const named = new Set(changes.map(({ alert }) => alert.name))
    return [...(await readRuleRecords(store.records)).values()]
      .flatMap(({ state }) => state.alert ?? [])
      .filter(({ name }) => !named.has(name))
      .map((alert) => (targets[target]?.content ? alert : hideTitle(alert)))
  }

  async #settle(delivery: Delivery, result: SendResult): Promise<Delivery> {
    const { clock } = this.#options
    const { answer } = result
    const nowMs = clock.now()
    if (result.sent)
      return this.#write({ ...delivery, state: 'delivered', dueAt: toTimestamp(nowMs), answer })
    if (!result.again || delivery.attempts >= maxAttempts) return this.#fail(delivery, answer)
    const boundMs = Math.min(maxRetryMs, firstRetryMs * retryFactor ** (delivery.attempts - 1))
    const delayMs = Math.max(boundMs * (0.5 + clock.random() / 2), result.afterMs ?? 0)
    return this.#write({
      ...delivery,
      state: 'waiting',
      dueAt: toTimestamp(nowMs + delayMs),
      answer,
    })
  }

  /** Ends a delivery as failed. The process whose write succeeds emits the event. */
  async #fail(delivery: Delivery, answer: string): Promise<Delivery> {
    const { store, clock, hub } = this.#options
    const failed = {
      ...delivery,
      state: 'failed',
      dueAt: toTimestamp(clock.now()),
      answer,
    } as const
    const written = await writeDelivery(store.records, failed)
    if (!written) return failed
    const { id, target, attempts } = delivery
    const error = new Error(
      `notification ${id} to ${target} failed after ${attempts} attempts: ${answer}`,
    )
    hub.emit({ type: 'error', during: 'sending notifications', error })
    return written
  }

  /** If another process has taken over the delivery, what it writes counts. */
  async #write(delivery: Delivery): Promise<Delivery> {
    return (await writeDelivery(this.#options.store.records, delivery)) ?? delivery
  }
}

function describeUnknownTarget({ answer }: Delivery): string {
  const last = answer === undefined ? '' : `; the last answer was: ${answer}`
  return `no process has this target${last}`
}

function withoutTitle(change: AlertChange): AlertChange {
  return { ...change, alert: hideTitle(change.alert) }
}

function hideTitle({ title: _title, ...alert }: Alert): Alert {
  return alert
}
