import type { AuditLog } from '../../admin/audit/audit-log.ts'
import type { EndpointName, IsStream, OutputOf, ReadInputOf } from '../../api/endpoints.ts'
import type { BulkAction } from '../../letter/bulk-action.ts'
import type { GroupDetail } from '../../letter/group.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { SavedView } from '../../api/schemas/saved-view.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Setting } from '../../config/settings.ts'
import type { PrometheusMetrics } from '../../observers/metrics/metrics.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import type { Identity } from '../sign-in/identity.ts'
import type { Credentials } from '../sign-in/sign-in.ts'
import type { PipelineAdmin } from '../../pipeline/admin.ts'
import type { Series } from '../series.ts'
import type { Feed } from '../feed/feed.ts'
import type { Tokens } from '../tokens.ts'
import type { Viewer } from '../viewer.ts'
import type { Views } from '../views.ts'

/** What the server needs of a pipeline. */
export type ServedPipeline = Pick<PipelineAdmin, 'graphs' | 'status' | 'find' | 'replay'>

/** What the handlers of all requests share. */
export interface Shared {
  dlq: DeadLetterQueue
  tokens: Tokens
  clock: Clock
  metrics: PrometheusMetrics
  audit: AuditLog
  views: Views
  series: Series
  /** Every effective setting of the server and its origin, without secrets. */
  settings: readonly Setting[]
  /** The pipeline of the server. Undefined: it has none. */
  pipeline: ServedPipeline | undefined
  feed: Feed
}

/** What a handler gets besides its input. */
export interface Context extends Shared {
  caller: Viewer
  /** The caller, and how it has proved who it is. */
  identity: Identity
  session: SessionActions
  /** The letter of the input, for endpoints whose bounds are `letter`. */
  letter: DeadLetter
  /** The group of the input, for endpoints whose bounds are `group`. */
  group: GroupDetail
  /** The bulk action of the input, for endpoints whose bounds are `action`. */
  action: BulkAction
  /** The saved view of the input, for endpoints whose bounds are `view`. */
  view: SavedView
  /**
   * The id of a letter that the request adds: the same whenever it is sent with its
   * Idempotency-Key. Undefined: any.
   */
  newId: string | undefined
  /** The version that the letter or the saved view of the input must still have. Undefined: any. */
  ifVersion: number | undefined
  /** The body, for endpoints whose body is lines. */
  body: AsyncIterable<Uint8Array>
  /** The header Last-Event-ID, not yet checked. */
  lastEventId: string | undefined
  /** Aborts when the client has gone. */
  signal: AbortSignal
  /** Ends the connection at once. */
  disconnect: () => void
  /** Whether the sender of the request still has the same rights. */
  isStillAllowed: () => Promise<boolean>
  /** Whether the server finishes requests, but is about to stop. */
  isStopping: boolean
  /** Reports an unexpected error that the response does not show. */
  onError: (error: unknown) => void
}

/** Opens and ends the session of a browser. */
export interface SessionActions {
  /** Whether people can sign in at an identity provider. */
  hasProvider: boolean
  /** Sets the cookie of a new session. */
  signIn(given: Credentials): Promise<Identity>
  /** False: the request has no session. */
  signOut(): Promise<boolean>
}

export type Handlers<N extends EndpointName = EndpointName> = {
  [K in N]: (
    input: ReadInputOf<K>,
    context: Context,
  ) => IsStream<K> extends true ? AsyncIterable<string> : Promise<OutputOf<K>> | OutputOf<K>
}
