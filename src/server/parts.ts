import { AuditLog } from '../admin/audit/audit-log.ts'
import type { Clock } from '../clock/clock.ts'
import type { ServerSettings } from '../config/server.ts'
import type { Setting } from '../config/settings.ts'
import { PrometheusMetrics } from '../observers/metrics/metrics.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'
import { Feed } from './feed/feed.ts'
import type { ServedPipeline, Shared } from './handlers/handler.ts'
import type { Idempotency } from './idempotency.ts'
import type { TrackedRequest } from './request-tracking.ts'
import { Series } from './series.ts'
import type { OneTimeCodes } from './sign-in/one-time-codes.ts'
import { SignIn } from './sign-in/sign-in.ts'
import type { Tokens } from './tokens.ts'
import { Views } from './views.ts'

export interface ServerOptions {
  dlq: DeadLetterQueue
  tokens: Tokens
  /** Keeps the responses of requests with an Idempotency-Key. */
  idempotency: Idempotency
  clock: Clock
  /** Codes that sign in a browser. */
  codes?: OneTimeCodes
  /** Who may sign in, and how. */
  settings?: ServerSettings
  version: string
  /** Whether to serve the dashboard and the documentation, if they are built. Default: true. */
  pages?: boolean
  /** Every effective setting and its origin, without secrets. Default: none are shown. */
  effectiveSettings?: readonly Setting[]
  /** The pipeline whose dead records can be replayed. Default: none. */
  pipeline?: ServedPipeline
  /** Aborts when the server is about to close: it is not ready any more, and streams end. */
  stopping?: AbortSignal
  /** What `GET /metrics` returns. Default: metrics of this server alone. */
  metrics?: PrometheusMetrics
  /** Gets every request after it was answered. */
  onAnswer?: (request: TrackedRequest) => void
  /** Reports an unexpected error, also outside of requests. */
  onError: (error: unknown, route: string, requestId?: string) => void
}

/** The parts of a server, which all requests share. */
export interface Parts {
  options: ServerOptions
  signIn: SignIn
  /** What handlers use. */
  shared: Shared
}

export function createParts(options: ServerOptions): Parts {
  const { dlq, tokens, clock, settings = {}, effectiveSettings = [], pipeline } = options
  const { metrics = new PrometheusMetrics({ process: false, clock }) } = options
  const { store } = dlq
  const report = (during: string) => (error: unknown) => options.onError(error, during)
  return {
    options,
    signIn: new SignIn({ ...options, store, settings }),
    shared: {
      dlq,
      tokens,
      clock,
      settings: effectiveSettings,
      pipeline,
      metrics: metrics.watch(dlq),
      audit: new AuditLog({ store, clock }),
      views: new Views(store, clock),
      series: new Series({ store, clock, onError: report('taking a sample') }),
      feed: new Feed({ dlq, clock, onError: report('live feed') }),
    },
  }
}
