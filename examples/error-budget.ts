import { DLQPolicy, type DeliveredMessage, type DLQPolicyOptions } from '../src/index.ts'

export interface ErrorBudgetOptions extends DLQPolicyOptions {
  /** The share of failures that is borne. Half of them unless said. */
  errorBudget?: number
  /** The share of requests like this one that failed lately, from 0 to 1. */
  errorRateOf: (request: unknown) => number
}

/** Dead-letters by how often requests of a kind fail, and not only by how often this one did. */
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
