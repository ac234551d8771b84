import type { BreakerSettings } from './breaker.ts'
import type { Budget } from './budget.ts'
import type { ConcurrencySettings } from './concurrency.ts'

/** Flow control of a queue, or of a dependency that several queues share. */
export interface FlowSettings {
  /** Circuit breaker: stops runs while the dependency is down. False: off. */
  breaker?: Partial<BreakerSettings> | false
  /** Rate limit of runs. Default: none. */
  budget?: Budget
  /** Letters that run at once; fewer while runs fail. False: only `maxConcurrent` applies. */
  concurrency?: Partial<ConcurrencySettings> | false
}
