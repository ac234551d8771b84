import { checkQueueName } from '../check/queue-name.ts'
import { ownOf, readPolicy, type QueuePolicy, type Settings } from './options.ts'

/** What holds for each queue: what was said where its handler was given, over `queues`, over the options for all. */
export class Policies {
  readonly #settings: Settings
  readonly #said = new Map<string, QueuePolicy>()
  readonly #merged = new Map<string, Settings>()

  constructor(settings: Settings) {
    this.#settings = settings
  }

  of(queue: string): Settings {
    const known = this.#merged.get(queue)
    if (known) return known
    const said = this.#said.get(queue)
    const merged = over(over(this.#settings, ownOf(this.#settings.queues, queue)), said)
    // What has a handler is asked for all the time; the names of other queues have no bound.
    if (said) this.#merged.set(queue, merged)
    return merged
  }

  set(queue: string, policy: QueuePolicy): void {
    this.#said.set(checkQueueName(queue), readPolicy(policy))
    this.#merged.delete(queue)
  }
}

/** The settings with what is given for a queue. Its `maxRetries` takes the place of all limits that are given for more queues. */
function over(settings: Settings, given: QueuePolicy = {}): Settings {
  if (given.maxRetries === undefined) return { ...settings, ...given }
  const { retryForMs: _, ...rest } = settings
  return { ...rest, maxRetriesByCategory: {}, ...given }
}
