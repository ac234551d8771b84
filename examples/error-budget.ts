import { DLQPolicy, type DeliveredMessage, type DLQPolicyOptions } from '../src/index.ts'

export interface ErrorBudgetOptions extends DLQPolicyOptions {
  /** The tolerated share of failures. Default: 0.5. */
  errorBudget?: number
  /** The share of similar requests that failed recently, from 0 to 1. */
  errorRateOf: (request: unknown) => number
}

/**
 * Dead-letters by the failure rate of similar requests, in addition to the deliveries of this one.
 */
export class ErrorBudgetPolicy extends DLQPolicy {
  readonly #errorBudget: number
  readonly #errorRateOf: (request: unknown) => number

  constructor({ errorBudget = 0.5, errorRateOf, ...options }: ErrorBudgetOptions) {
    super(options)
    this.#errorBudget = errorBudget
    this.#errorRateOf = errorRateOf
  }

  override shouldDeadLetter(delivered: DeliveredMessage, error: unknown): boolean {
    return (
      super.shouldDeadLetter(delivered, error) ||
      this.#errorRateOf(delivered.request) > this.#errorBudget
    )
  }
}
