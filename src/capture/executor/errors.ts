/**
 * A run or a whole call exceeded the time limit of its policy. The name is the one that the
 * platform uses.
 */
export class CallTimeout extends Error {
  constructor(what: string, options?: ErrorOptions) {
    super(what, options)
    this.name = 'TimeoutError'
  }
}

/** The breaker is open, so the call was not made. The cause is the last failure. */
export class CircuitBreakerOpenError extends Error {
  /** When the breaker lets a call through again. */
  readonly retryAfterMs: number

  constructor(policy: string, retryAfterMs: number, cause: unknown) {
    super(`the circuit breaker of ${policy} is open, the call was not made`, { cause })
    this.name = 'CircuitBreakerOpenError'
    this.retryAfterMs = retryAfterMs
  }
}

/** All slots of the bulkhead are taken, so the call was not made. */
export class BulkheadFullError extends Error {
  constructor(policy: string, { concurrent, queue }: { concurrent: number; queue: number }) {
    super(
      `${policy} is busy: ${concurrent} calls run and ${queue} wait already (bulkhead), try again later`,
    )
    this.name = 'BulkheadFullError'
  }
}
