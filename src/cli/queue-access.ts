import type { DeadLetter, LetterSummary, State } from '../letter/letter.ts'
import type { LetterFilter, LetterQuery, Page } from '../letter/query.ts'
import type { DeadLetterQueue } from '../queue/queue.ts'

export type QueueCounts = Record<State, number> & { queue: string }

/** Reads letters: of a store, without loading the queue, or of a server. */
export interface LetterReader {
  /** False: every call is a request to a server, so that many small ones take long. */
  readonly isLocal: boolean
  get(id: string): Promise<DeadLetter | undefined>
  /** The same letter with the exact bytes of its payload, which a server does not show. */
  getExact(id: string): Promise<DeadLetter | undefined>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  /** The number of letters that match. Undefined: they would have to be read to count them. */
  count(filter: LetterFilter): Promise<number | undefined>
  /** Letters by queue and state, by name of the queue. */
  countQueues(): Promise<QueueCounts[]>
}

/**
 * What commands do with a queue. `DeadLetterQueue` does it on a store, `RemoteQueue` through the
 * API of a server, which takes the name of the person from the token and ignores `by`.
 */
export type QueueAccess = Pick<
  DeadLetterQueue,
  // letters
  | 'retry'
  | 'replay'
  | 'resolve'
  | 'fail'
  | 'park'
  | 'review'
  | 'note'
  | 'edit'
  | 'undoEdit'
  | 'archive'
  | 'restore'
  | 'remove'
  | 'diff'
  | 'lineage'
  | 'search'
  // bulk actions
  | 'plan'
  | 'planUndo'
  | 'approve'
  | 'run'
  | 'pause'
  | 'resume'
  | 'cancel'
  | 'results'
  | 'bulkAction'
  | 'bulkActions'
  | 'start'
  // groups
  | 'groups'
  | 'group'
  | 'explainGroup'
  | 'resolveGroup'
  | 'ignoreGroup'
  | 'reopenGroup'
  | 'assignGroup'
  | 'noteGroup'
  | 'mergeGroups'
  | 'splitGroup'
  // queues and reports
  | 'queues'
  | 'pauseQueue'
  | 'resumeQueue'
  | 'pausedQueues'
  | 'stats'
  | 'metrics'
  | 'health'
  | 'workers'
  | 'backtest'
  | 'alerts'
  | 'alertHistory'
  | 'alertDeliveries'
  | 'acknowledgeAlert'
  // audit log and privacy
  | 'audit'
  | 'verifyAudit'
  | 'exportAudit'
  | 'eraseSubject'
>
