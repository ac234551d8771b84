import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import { Repeater } from '../../clock/repeater.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { EventOf, ObserverHub, RedriveEvent } from '../../observer.ts'
import { breakerRule, type Alert, type AlertRule } from '../../policy/alert-rule.ts'
import type { Measures, Standing } from '../../policy/alert-measures.ts'
import { checksOf, evaluate, type Evaluation } from '../../policy/alerts.ts'
import type { Store } from '../../store.ts'
import type { AlertChange } from './change.ts'
import { listChange } from './events.ts'
import { readKept, removeOldKept, unkept, writeKept, type Kept } from './standing.ts'

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

type News = EventOf<'alert'>

/** An alert that no process has confirmed for this many evaluations is abandoned. */
const patience = 3
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
  readonly #unsure = new Map<string, News>()
  /**
   * Versions of raised records that this process does not confirm, and the number of evaluations
   * without a change.
   */
  #strange = new Map<string, { version: number; looks: number }>()
  #raised: Alert[] = []
  #evaluations = 0
  readonly #repeater: Repeater

  constructor(options: AlertMonitorOptions) {
    this.#options = options
    this.#repeater = new Repeater({ clock: options.clock, round: () => this.#round() })
    // Breakers also change while the monitor is stopped: when runs end after a stop, and in
    // executors before the start.
    options.hub.on('breaker', (event) => this.#hear(event))
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
      this.#remember(await readKept(this.#options.store.records))
    } catch {
      // The next scheduled evaluation reports the error; the last known alerts are better than
      // none.
    }
    return this.#raised
  }

  #hear(event: RedriveEvent): void {
    if (event.type !== 'breaker' || event.state === 'half-open') return
    const rule = breakerRule(event.kind, event.name)
    const open = event.state === 'open'
    if (open || this.#breakers.has(rule.name)) this.#breakers.set(rule.name, { rule, open })
  }

  async #round(): Promise<number> {
    const { hub, everyMs } = this.#options
    await this.#look().catch((error: unknown) =>
      hub.emit({ type: 'error', during: 'alerts', error }),
    )
    return everyMs
  }

  async #look(): Promise<void> {
    const { store, clock, rules, measure, everyMs } = this.#options
    const strange = this.#strange
    this.#strange = new Map()
    const kept = await readKept(store.records)
    this.#tellUnsure(kept)
    const known = [...this.#breakers.values()]
    const breakers = new Map(known.map(({ rule, open }) => [rule.name, open]))
    const alerted = [...kept.values()].flatMap(({ standing }) => standing.alert?.group ?? [])
    const measures = { ...(await measure([...new Set(alerted)])), breakers, everyMs }
    const nowMs = clock.now()
    const before = new Map([...kept].map(([name, { standing }]) => [name, asOf(nowMs, standing)]))
    const watched = checksOf([...rules, ...known.map(({ rule }) => rule)], measures, before)
    const evaluation = evaluate(watched, measures, before, nowMs)
    for (const { name } of watched) {
      const news = newsOf(name, evaluation)
      await this.#write(name, kept, evaluation.standing.get(name) ?? {}, news)
    }
    const names = new Set(watched.map(({ name }) => name))
    for (const [name, alert] of this.#unwatched(kept, names, strange))
      await this.#abandon(name, alert, kept)
    await this.#listChanges(kept)
    this.#remember(kept)
    if (this.#evaluations++ % removeEvery === 0) await removeOldKept(store.records, nowMs)
  }

  /** Lists changes of all processes. A change is listed before its record forgets it. */
  async #listChanges(kept: Map<string, Kept>): Promise<void> {
    const { records } = this.#options.store
    const pending = [...kept].filter(([, { unlisted }]) => unlisted.length > 0)
    for (const [name, one] of pending) {
      for (const change of one.unlisted) await listChange(records, change)
      await writeKept(records, name, { ...one, unlisted: [] })
    }
    if (pending.length > 0) this.#options.onChange?.()
  }

  /**
   * Writes changed records, and raised ones always. On a conflict another process was first; the
   * next evaluation reads its record.
   */
  async #write(
    name: string,
    kept: Map<string, Kept>,
    standing: Standing,
    news?: News,
  ): Promise<void> {
    const { store, clock, hub, everyMs } = this.#options
    const old = kept.get(name) ?? unkept
    if (!standing.alert && isDeepStrictEqual(standing, old.standing)) return this.#settled(name)
    const change = news ? clock.id() : old.change
    if (news) this.#unsure.set(change, news)
    const unlisted = news ? [...old.unlisted, toChange(change, news, clock.now())] : old.unlisted
    const written = { standing, everyMs, change, unlisted }
    const result = await writeKept(store.records, name, { ...written, version: old.version })
    this.#unsure.delete(change)
    if (result === 'conflict') return
    kept.set(name, { ...written, version: old.version + 1 })
    if (!standing.alert) this.#settled(name)
    if (news) hub.emit(news)
  }

  /** Forgets a breaker that has closed and whose record is written. */
  #settled(name: string): void {
    if (this.#breakers.get(name)?.open === false) this.#breakers.delete(name)
  }

  /**
   * Emits events whose write succeeded although the store reported an error; the others are
   * evaluated again.
   */
  #tellUnsure(kept: ReadonlyMap<string, Kept>): void {
    for (const { change } of kept.values()) {
      const news = this.#unsure.get(change)
      if (news) this.#options.hub.emit(news)
    }
    this.#unsure.clear()
  }

  /** Raised alerts of other processes that were not confirmed recently, by rule name. */
  #unwatched(
    kept: ReadonlyMap<string, Kept>,
    names: ReadonlySet<string>,
    strange: ReadonlyMap<string, { version: number; looks: number }>,
  ): Map<string, Alert> {
    const gone = new Map<string, Alert>()
    for (const [name, { version, standing, everyMs }] of kept) {
      if (!standing.alert || names.has(name)) continue
      const seen = strange.get(name)
      const looks = seen?.version === version ? seen.looks + 1 : 0
      this.#strange.set(name, { version, looks })
      const enough = patience * Math.max(1, everyMs / this.#options.everyMs)
      if (looks >= enough) gone.set(name, standing.alert)
    }
    return gone
  }

  async #abandon(name: string, alert: Alert, kept: Map<string, Kept>): Promise<void> {
    const { judged, silence } = kept.get(name)?.standing ?? {}
    const clearedAt = toTimestamp(this.#options.clock.now())
    const summary = `nobody watches this any more: ${alert.summary}`
    const news: News = { type: 'alert', alert: { ...alert, summary, clearedAt }, state: 'cleared' }
    const rest = { ...(judged ? { judged } : {}), ...(silence ? { silence } : {}) }
    await this.#write(name, kept, rest, news)
  }

  #remember(kept: ReadonlyMap<string, Kept>): void {
    this.#raised = [...kept.values()].flatMap(({ standing }) => standing.alert ?? [])
  }
}

/**
 * Limits timestamps to now: a clock that was ahead may have written a future one, which would delay
 * an alert.
 */
function asOf(nowMs: number, standing: Standing): Standing {
  const { sinceMs = nowMs } = standing
  return sinceMs > nowMs ? { ...standing, sinceMs: nowMs } : standing
}

function newsOf(name: string, { raised, cleared }: Evaluation): News | undefined {
  for (const alert of raised)
    if (alert.name === name) return { type: 'alert', alert, state: 'raised' }
  for (const alert of cleared)
    if (alert.name === name) return { type: 'alert', alert, state: 'cleared' }
  return undefined
}

function toChange(id: string, { alert, state }: News, nowMs: number): AlertChange {
  return { id, at: toTimestamp(nowMs), state, alert }
}
