import { checkQueueName } from '../check/queue-name.ts'
import { Redaction, type RedactOptions } from '../policy/redaction/redaction.ts'
import { checkVersion, ownOf, readPolicy, type QueuePolicy, type Settings } from './options.ts'

/**
 * The settings of each queue: options given with its handler override `queues`, which overrides the
 * options for all.
 */
export class Policies {
  readonly #settings: Settings
  readonly #given = new Map<string, QueuePolicy>()
  readonly #merged = new Map<string, Settings>()
  readonly #redactions = new WeakMap<RedactOptions, Redaction>()

  constructor(settings: Settings) {
    this.#settings = settings
  }

  of(queue: string): Settings {
    const known = this.#merged.get(queue)
    if (known) return known
    const given = this.#given.get(queue)
    const listed = ownOf(this.#settings.queues, queue)
    if (!given && !listed) return this.#settings
    const merged = override(override(this.#settings, listed), given)
    // Only queues with a handler are cached: the number of other names has no bound.
    if (given) this.#merged.set(queue, merged)
    return merged
  }

  /** What is hidden of the letters of a queue. Undefined: nothing. */
  redaction(queue: string): Redaction | undefined {
    const { redact } = this.of(queue)
    return redact && this.#compile(redact)
  }

  /** The redaction of every queue that has one, for text that may come from any of them. */
  redactions(): Redaction[] {
    const { redact, queues } = this.#settings
    const all = [
      redact,
      ...[...Object.values(queues), ...this.#given.values()].map((one) => one.redact),
    ]
    return [...new Set(all.filter((one) => one !== undefined))].map((one) => this.#compile(one))
  }

  /** A string that is stored and may come from any queue, as queues with `atCapture` store it. */
  redactStored(text: string): string {
    return this.redactions()
      .filter(({ atCapture }) => atCapture)
      .reduce((shown, redaction) => redaction.text(shown), text)
  }

  #compile(redact: RedactOptions): Redaction {
    const known = this.#redactions.get(redact) ?? new Redaction(redact)
    this.#redactions.set(redact, known)
    return known
  }

  set(queue: string, policy: QueuePolicy): void {
    const read = readPolicy(policy)
    checkVersion({ queues: { [checkQueueName(queue)]: read }, app: this.#settings.app })
    this.#given.set(queue, read)
    this.#merged.delete(queue)
  }
}

/**
 * The settings with the options of a queue. Its `maxRetries` replaces all limits that apply to more
 * queues.
 */
function override(settings: Settings, given: QueuePolicy = {}): Settings {
  if (given.maxRetries === undefined) return { ...settings, ...given }
  const { retryForMs: _, ...rest } = settings
  return { ...rest, maxRetriesByCategory: {}, ...given }
}
