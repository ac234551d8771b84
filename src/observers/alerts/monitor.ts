import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../clock/clock.ts'
import { Repeater } from '../../clock/repeater.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { EventOf, ObserverHub, RedriveEvent } from '../../observer.ts'
import {
  breakerRule,
  evaluate,
  type Alert,
  type AlertRule,
  type Evaluation,
  type Measures,
  type Standing,
} from '../../policy/alerts.ts'
import type { Store } from '../../store.ts'
import { readKept, unkept, writeKept, type Kept } from './standing.ts'

export interface AlertMonitorOptions {
  store: Pick<Store, 'records'>
  clock: Clock
  hub: ObserverHub
  rules: readonly AlertRule[]
  everyMs: number
  measure: () => Promise<Measures>
}

type News = EventOf<'alert'>

/** An alert that nobody has vouched for during so many looks has nobody left who watches its rule. */
const patience = 3

/**
 * Looks every `everyMs` whether a rule is crossed, and tells when that changes: a rule of the options, or the breaker of
 * a queue in this process. What stands is kept in the store, each rule in a record of its own that is written by
 * compare-and-set: of several processes the one whose write counts tells, and a restart tells nothing anew.
 *
 * A look reads what stands first and measures after that, so a write that goes through was decided on measures that are
 * newer than what it replaces. Whoever watches a raised rule writes its record at every look, to vouch for it. An alert whose record no
 * longer changes belongs to a rule that was taken away, or to a breaker of a process that died: it is cleared.
 */
export class AlertMonitor {
  readonly #options: AlertMonitorOptions
  /** Breakers that opened here, by the name of their rule. Not open: it has closed since, and that is not written yet. */
  readonly #breakers = new Map<string, { rule: AlertRule; open: boolean }>()
  /** News whose write failed in a way that does not tell whether it was carried out, by the name of the change. */
  readonly #unsure = new Map<string, News>()
  /** Versions of raised records that nobody here vouches for, and for how many looks each has been the same. */
  #strange = new Map<string, { version: number; looks: number }>()
  #raised: Alert[] = []
  readonly #repeater: Repeater

  constructor(options: AlertMonitorOptions) {
    this.#options = options
    this.#repeater = new Repeater({ clock: options.clock, round: () => this.#round() })
    // Breakers turn while nobody looks, too: when runs end after a stop, and in executors before the start.
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

  /** The alerts that stand, whoever raised them, by name. Never rejects: while the store is away, what was known last. */
  async raised(): Promise<Alert[]> {
    try {
      this.#remember(await readKept(this.#options.store.records))
    } catch {
      // The look at its time tells of the trouble; to say what was known is better than to say nothing.
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
    const { store, clock, rules, measure } = this.#options
    const strange = this.#strange
    this.#strange = new Map()
    const kept = await readKept(store.records)
    this.#tellUnsure(kept)
    const known = [...this.#breakers.values()]
    const breakers = new Map(known.map(({ rule, open }) => [rule.name, open]))
    const measures = { ...(await measure()), breakers }
    const watched = [...rules, ...known.map(({ rule }) => rule)]
    const nowMs = clock.now()
    const before = new Map([...kept].map(([name, { standing }]) => [name, asOf(nowMs, standing)]))
    const evaluation = evaluate(watched, measures, before, nowMs)
    for (const { name } of watched) {
      const news = newsOf(name, evaluation)
      await this.#write(name, kept, evaluation.standing.get(name) ?? {}, news)
    }
    const names = new Set(watched.map(({ name }) => name))
    for (const [name, alert] of this.#unwatched(kept, names, strange))
      await this.#abandon(name, alert, kept)
    this.#remember(kept)
  }

  /** Writes what changed, and what is raised in any case. A conflict means that another process was first: the next look sees what it wrote. */
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
    const result = await writeKept(store.records, name, { ...old, standing, everyMs, change })
    this.#unsure.delete(change)
    if (result === 'conflict') return
    kept.set(name, { version: old.version + 1, standing, everyMs, change })
    if (!standing.alert) this.#settled(name)
    if (news) hub.emit(news)
  }

  /** A breaker that has closed, and is written as such, is no longer of interest. */
  #settled(name: string): void {
    if (this.#breakers.get(name)?.open === false) this.#breakers.delete(name)
  }

  /** What was written although the store could not say so is told now; what was not is evaluated again. */
  #tellUnsure(kept: ReadonlyMap<string, Kept>): void {
    for (const { change } of kept.values()) {
      const news = this.#unsure.get(change)
      if (news) this.#options.hub.emit(news)
    }
    this.#unsure.clear()
  }

  /** Raised alerts of others that nobody has vouched for in a while, by the name of their rule. */
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
    const judged = kept.get(name)?.standing.judged
    const clearedAt = toTimestamp(this.#options.clock.now())
    const summary = `nobody watches this any more: ${alert.summary}`
    const news: News = { type: 'alert', alert: { ...alert, summary, clearedAt }, state: 'cleared' }
    await this.#write(name, kept, judged ? { judged } : {}, news)
  }

  #remember(kept: ReadonlyMap<string, Kept>): void {
    this.#raised = [...kept.values()].flatMap(({ standing }) => standing.alert ?? [])
  }
}

/** A clock that was ahead, here or elsewhere, wrote a moment that is still to come. A condition that holds would wait for it. */
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
