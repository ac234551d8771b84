// The client of the server, for browsers and Node.
export { isLegal, type Move } from '../letter/move-table.ts'
export {
  createClient,
  ProblemError,
  type CallOptions,
  type Client,
  type ClientOptions,
} from './client.ts'
export { endpoints, type EndpointName, type InputOf, type OutputOf } from './endpoints.ts'
export type { Problem } from './problem.ts'
export {
  permissionOfAction,
  permissions,
  permissionsOfRole,
  roles,
  type Permission,
  type Role,
  type Scope,
} from './permissions.ts'
export { bulkStates, filterActionNames, outcomes } from '../letter/bulk-action.ts'
export { categories, priorities, reasons, states } from '../letter/letter.ts'
export type { BulkActionView, BulkResultView } from './schemas/bulk.ts'
export type { FeedEvent } from './schemas/feed.ts'
export type { FilterInput } from './schemas/filter.ts'
export type { GroupDetailView, GroupView } from './schemas/group.ts'
export type { LetterView, PayloadView, SummaryView } from './schemas/letter.ts'
export type { SavedView } from './schemas/saved-view.ts'
export type { MailboxView } from './schemas/mailbox.ts'
export type { TokenView } from './schemas/token.ts'
export type { WorkerView } from './schemas/worker.ts'
