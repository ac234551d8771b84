import type { Clock } from '../../clock/clock.ts'
import type { RedriveEvent } from '../../observer.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { handledLetterOf, letterQueueName, type HandledLetter } from './handled-letter.ts'
import { LabelValues } from './label-values.ts'
import type { MetricSet } from './metric-set.ts'

const captureOutcomes = ['stored', 'duplicate', 'full'] as const
const runOutcomes = [
  'resolved',
  'rescheduled',
  'exhausted',
  'parked',
  'released',
  'lease-lost',
] as const
const breakerStates = ['open', 'half-open', 'closed'] as const
const maxQueues = 100
const maxBreakers = 100
const maxSources = 100
const maxAlerts = 50

/** Counts the events of a queue. */
export class EventCounter {
  readonly #set: MetricSet
  readonly #clock: Clock
  readonly #queues: LabelValues
  readonly #breakers = new LabelValues(maxBreakers)
  readonly sources = new LabelValues(maxSources)
  readonly alerts = new LabelValues(maxAlerts)

  constructor(set: MetricSet, clock: Clock) {
    this.#set = set
    this.#clock = clock
    this.#queues = new LabelValues(maxQueues, (queue) => this.#startAtZero(queue))
  }

  /** Names of queues as labels. */
  get queues(): LabelValues {
    return this.#queues
  }

  count(event: RedriveEvent): void {
    const handled = handledLetterOf(event, this.#clock.now())
    if (handled) this.#countHandled(handled)
    switch (event.type) {
      case 'captured':
        this.#countSent(event.letter)
        return this.#countCapture(event.letter.queue, 'stored')
      case 'duplicate':
        return this.#countCapture(event.letter.queue, 'duplicate')
      case 'full':
        return this.#countCapture(event.queue, 'full')
      case 'resolved':
      case 'rescheduled':
      case 'exhausted':
      case 'parked':
        // Without a duration it was no run: a person decided, or the letter was captured as parked.
        if (event.durationMs !== undefined)
          this.#countRun(event.letter.queue, event.type, event.durationMs)
        return
      case 'released':
      case 'lease-lost':
        return this.#countRun(event.letter.queue, event.type)
      default:
        return this.#countOther(event)
    }
  }

  #countOther(event: RedriveEvent): void {
    switch (event.type) {
      case 'stuck':
        return this.#set.add('redrive_handlers_stuck_total', this.#queueOf(event.letter.queue))
      case 'breaker': {
        const { kind, state: present } = event
        const name = this.#breakers.of(event.name)
        for (const state of breakerStates) {
          const value = state === present ? 1 : 0
          this.#set.set('redrive_breaker_state', { kind, name, state }, value)
        }
        return
      }
      case 'drained':
        return this.#set.add('redrive_spool_drained_total', {}, event.count)
      case 'alert': {
        const { alert, state } = event
        return this.#set.add('redrive_alerts_total', { severity: alert.severity, state })
      }
      case 'error':
        return this.#set.add('redrive_errors_total', {})
      default:
    }
  }

  #queueOf(queue: string): { queue: string } {
    return { queue: this.#queues.of(queue) }
  }

  #countCapture(queue: string, outcome: (typeof captureOutcomes)[number]): void {
    this.#set.add('redrive_captures_total', { ...this.#queueOf(queue), outcome })
  }

  #countRun(queue: string, outcome: (typeof runOutcomes)[number], durationMs?: number): void {
    const labels = this.#queueOf(queue)
    this.#set.add('redrive_runs_total', { ...labels, outcome })
    if (durationMs !== undefined)
      this.#set.observe('redrive_run_duration_seconds', labels, durationMs / 1000)
  }

  /** The loop of a mailbox counts its own messages, also those that it stores as letters. */
  #countSent(letter: DeadLetter): void {
    const { source, queue, category, metadata } = letter
    if (source.kind === 'mailbox' && !('origin' in metadata)) return
    this.#set.add('dlq_messages_sent_total', {
      source: this.#sourceOf(letter),
      destination: letterQueueName(this.#queues.of(queue)),
      error_type: category,
    })
  }

  #countHandled({ letter, action, ageSeconds, durationMs }: HandledLetter): void {
    const dlq = letterQueueName(this.#queues.of(letter.queue))
    const labels = { dlq, source: this.#sourceOf(letter), action }
    this.#set.add('dlq_messages_processed_total', labels)
    if (action === 'replayed') this.#set.add('dlq_messages_replayed_total', labels)
    if (action === 'discarded') this.#set.add('dlq_messages_discarded_total', labels)
    this.#set.observe('dlq_message_age_seconds', labels, ageSeconds)
    if (durationMs !== undefined)
      this.#set.observe('dlq_processing_duration_seconds', labels, durationMs / 1000)
  }

  /** The mailbox, or the kind of another source. */
  #sourceOf({ source }: DeadLetter): string {
    return source.kind === 'mailbox' ? this.sources.of(source.mailbox) : source.kind
  }

  /**
   * A counter that appears with its first event has not increased, as Prometheus sees it. So the
   * counters of a queue start at 0 when it is first seen.
   */
  #startAtZero(queue: string): void {
    for (const outcome of captureOutcomes)
      this.#set.add('redrive_captures_total', { queue, outcome }, 0)
    for (const outcome of runOutcomes) this.#set.add('redrive_runs_total', { queue, outcome }, 0)
    this.#set.add('redrive_handlers_stuck_total', { queue }, 0)
  }
}
