import type { BreakerSettings } from './breaker.ts'
import type { Budget } from './budget.ts'
import type { ConcurrencySettings } from './concurrency.ts'

/** What holds letters back before a queue, or before something that several queues need. */
export interface BrakeSettings {
  /** When letters wait instead of running into a wall. False: never. */
  breaker?: Partial<BreakerSettings> | false
  /** How much may be asked of it. No limit unless said. */
  budget?: Budget
  /** How many letters run at the same time; fewer while runs fail. False: only `maxConcurrent` counts. */
  concurrency?: Partial<ConcurrencySettings> | false
}
