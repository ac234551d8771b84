import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import { Repeater } from '../../clock/repeater.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { EventOf, ObserverHub, RedriveEvent } from '../../observer.ts'
import { breakerRule, type Alert, type AlertRule } from '../../policy/alert-rule.ts'
import type { Measures, RuleState } from '../../policy/alert-measures.ts'
import { checksOf, evaluate, type Evaluation } from '../../policy/alerts.ts'
import type { Store } from '../../store.ts'
import type { AlertChange } from './change.ts'
import { listChange, removeOldChanges } from './events.ts'
import {
  readRuleRecords,
  removeOldRuleRecords,
  noRecord,
  writeRuleRecord,
  type RuleRecord,
} from './rule-records.ts'

export interface AlertMonitorOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  hub: ObserverHub
  rules: readonly AlertRule[]
  everyMs: number
  /** `alerted` are the groups that have a raised alert. */
  measure: (alerted: readonly string[]) => Promise<Measures>
  /** Called when there are new changes to notify about. */
  onChange?: () => void
}

type AlertEvent = EventOf<'alert'>

/** An alert that no process has confirmed for this many evaluations is abandoned. */
const maxUnconfirmed = 3
/** Evaluations between two removals of old records. */
const removeEvery = 60

/**
 * Evaluates the alert rules every `everyMs` and emits an event when an alert is raised or cleared:
 * by a rule of the options, or by a breaker in this process. The state of each rule is a record in
 * the store, written by compare-and-set: of several processes, only the one whose write succeeds
 * emits the event, and a restart emits nothing again. The same write contains the change for the
 * list of events, from which notifications are made: whichever process sees it there lists it, so
 * that a crash after the write loses no notification.
 *
 * An evaluation reads the records first and measures afterwards, so a successful write is based on
 * measures newer than the record that it replaces. Each process writes the record of a raised rule
 * at every evaluation, to confirm it. An alert whose record no longer changes belongs to a removed
 * rule, or to a breaker of a dead process: it is cleared.
 */
export class AlertMonitor {
  readonly #options: AlertMonitorOptions
  /**
   * Breakers of this process, by rule name. False: the breaker has closed, and that is not written
   * yet.
   */
  readonly #breakers = new Map<string, { rule: AlertRule; open: boolean }>()
  /** Events whose write had an unknown outcome, by change id. */
  readonly #uncertain = new Map<string, AlertEvent>()
  /**
   * Versions of raised records that this process does not confirm, and the number of evaluations
   * without a change.
   */
  #unconfirmed = new Map<string, { version: number; evaluations: number }>()
  #raised: Alert[] = []
  #evaluations = 0
  readonly #repeater: Repeater

  constructor(options: AlertMonitorOptions) {
    this.#options = options
    this.#repeater = new Repeater({ clock: options.clock, round: () => this.#round() })
    // Breakers also change while the monitor is stopped: when runs end after a stop, and in
    // executors before the start.
    options.hub.on('breaker', (event) => this.#recordBreaker(event))
  }

  /** Evaluates the rules at once, and then every `everyMs`. Safe to call twice. */
  start(): void {
    this.#repeater.start()
  }

  /** Waits for the evaluation in progress. Raised alerts stay raised. Safe to call twice. */
  stop(): Promise<void> {
    return this.#repeater.stop()
  }

  /**
   * The raised alerts of all processes, by name. Never rejects: while the store is unreachable, the
   * last known ones.
   */
  async raised(): Promise<Alert[]> {
    try {
      this.#remember(await readRuleRecords(this.#options.store.records))
    } catch {
      // The next scheduled evaluation reports the error; the last known alerts are better than
      // none.
    }
    return this.#raised
  }

  #recordBreaker(event: RedriveEvent): void {
    if (event.type !== 'breaker' || event.state === 'half-open') return
    const rule = breakerRule(event.kind, event.name)
    const open = event.state === 'open'
    if (open || this.#breakers.has(rule.name)) this.#breakers.set(rule.name, { rule, open })
  }

  async #round(): Promise<number> {
    const { hub, everyMs } = this.#options
    await this.#evaluateRules().catch((error: unknown) =>
      hub.emit({ type: 'error', during: 'alerts', error }),
    )
    return everyMs
  }

  async #evaluateRules(): Promise<void> {
    const { store, clock, rules, measure, everyMs } = this.#options
    const unconfirmed = this.#unconfirmed
    this.#unconfirmed = new Map()
    const stored = await readRuleRecords(store.records)
    this.#emitUncertain(stored)
    const known = [...this.#breakers.values()]
    const breakers = new Map(known.map(({ rule, open }) => [rule.name, open]))
    const alerted = [...stored.values()].flatMap(({ state }) => state.alert?.group ?? [])
    const measures = { ...(await measure([...new Set(alerted)])), breakers, everyMs }
    const nowMs = clock.now()
    const before = new Map([...stored].map(([name, { state }]) => [name, asOf(nowMs, state)]))
    const checks = checksOf([...rules, ...known.map(({ rule }) => rule)], measures, before)
    const evaluation = evaluate(checks, measures, before, nowMs)
    for (const { name } of checks) {
      const event = eventOf(name, evaluation)
      await this.#write(name, stored, evaluation.states.get(name) ?? {}, event)
    }
    const names = new Set(checks.map(({ name }) => name))
    for (const [name, alert] of this.#findAbandoned(stored, names, unconfirmed))
      await this.#abandon(name, alert, stored)
    await this.#listChanges(stored)
    this.#remember(stored)
    if (this.#evaluations++ % removeEvery === 0) {
      await removeOldRuleRecords(store.records, nowMs)
      await removeOldChanges(store.records, nowMs)
    }
  }

  /** Lists changes of all processes. A change is listed before its record forgets it. */
  async #listChanges(stored: Map<string, RuleRecord>): Promise<void> {
    const { records } = this.#options.store
    const pending = [...stored].filter(([, { unlisted }]) => unlisted.length > 0)
    for (const [name, one] of pending) {
      for (const change of one.unlisted) await listChange(records, change)
      await writeRuleRecord(records, name, { ...one, unlisted: [] })
    }
    if (pending.length > 0) this.#options.onChange?.()
  }

  /**
   * Writes changed records, and raised ones always. On a conflict another process was first; the
   * next evaluation reads its record.
   */
  async #write(
    name: string,
    stored: Map<string, RuleRecord>,
    state: RuleState,
    event?: AlertEvent,
  ): Promise<void> {
    const { store, clock, hub, everyMs } = this.#options
    const old = stored.get(name) ?? noRecord
    if (!state.alert && isDeepStrictEqual(state, old.state)) return this.#forgetClosedBreaker(name)
    const change = event ? clock.id() : old.change
    if (event) this.#uncertain.set(change, event)
    const unlisted = event ? [...old.unlisted, toChange(change, event, clock.now())] : old.unlisted
    const written = { state, everyMs, change, unlisted }
    const result = await writeRuleRecord(store.records, name, { ...written, version: old.version })
    this.#uncertain.delete(change)
    if (result === 'conflict') return
    stored.set(name, { ...written, version: old.version + 1 })
    if (!state.alert) this.#forgetClosedBreaker(name)
    if (event) hub.emit(event)
  }

  /** Forgets a breaker that has closed and whose record is written. */
  #forgetClosedBreaker(name: string): void {
    if (this.#breakers.get(name)?.open === false) this.#breakers.delete(name)
  }

  /**
   * Emits events whose write succeeded although the store reported an error; the others are
   * evaluated again.
   */
  #emitUncertain(stored: ReadonlyMap<string, RuleRecord>): void {
    for (const { change } of stored.values()) {
      const event = this.#uncertain.get(change)
      if (event) this.#options.hub.emit(event)
    }
    this.#uncertain.clear()
  }

  /** Raised alerts of other processes that were not confirmed recently, by rule name. */
  #findAbandoned(
    stored: ReadonlyMap<string, RuleRecord>,
    names: ReadonlySet<string>,
    unconfirmed: ReadonlyMap<string, { version: number; evaluations: number }>,
  ): Map<string, Alert> {
    const abandoned = new Map<string, Alert>()
    for (const [name, { version, state, everyMs }] of stored) {
      if (!state.alert || names.has(name)) continue
      const seen = unconfirmed.get(name)
      const evaluations = seen?.version === version ? seen.evaluations + 1 : 0
      this.#unconfirmed.set(name, { version, evaluations })
      const enough = maxUnconfirmed * Math.max(1, everyMs / this.#options.everyMs)
      if (evaluations >= enough) abandoned.set(name, state.alert)
    }
    return abandoned
  }

  async #abandon(name: string, alert: Alert, stored: Map<string, RuleRecord>): Promise<void> {
    const { judged, silence } = stored.get(name)?.state ?? {}
    const clearedAt = toTimestamp(this.#options.clock.now())
    const summary = `nobody watches this any more: ${alert.summary}`
    const event: AlertEvent = {
      type: 'alert',
      alert: { ...alert, summary, clearedAt },
      state: 'cleared',
    }
    const rest = { ...(judged ? { judged } : {}), ...(silence ? { silence } : {}) }
    await this.#write(name, stored, rest, event)
  }

  #remember(stored: ReadonlyMap<string, RuleRecord>): void {
    this.#raised = [...stored.values()].flatMap(({ state }) => state.alert ?? [])
  }
}

/**
 * Limits timestamps to now: a clock that was ahead may have written a future one, which would delay
 * an alert.
 */
function asOf(nowMs: number, state: RuleState): RuleState {
  const { sinceMs = nowMs } = state
  return sinceMs > nowMs ? { ...state, sinceMs: nowMs } : state
}

function eventOf(name: string, { raised, cleared }: Evaluation): AlertEvent | undefined {
  for (const alert of raised)
    if (alert.name === name) return { type: 'alert', alert, state: 'raised' }
  for (const alert of cleared)
    if (alert.name === name) return { type: 'alert', alert, state: 'cleared' }
  return undefined
}

function toChange(id: string, { alert, state }: AlertEvent, nowMs: number): AlertChange {
  return { id, at: toTimestamp(nowMs), state, alert }
}
