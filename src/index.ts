export { DeadLetterQueue, type GuardSettings } from './queue/queue.ts'
export type { ClearOptions } from './queue/actions.ts'
export type {
  Approval,
  BulkAction,
  BulkActionName,
  BulkInput,
  BulkLimits,
  BulkProgress,
  BulkResult,
  BulkState,
  Canary,
  EditPreview,
  FilterActionName,
  Ineligible,
  Outcome,
  SampleLetter,
  TimeWindow,
  Transform,
} from './letter/bulk-action.ts'
export type { QueuesQuery, QueueSummary } from './admin/queue-list.ts'
export type {
  AuditAction,
  AuditEntry,
  AuditOutcome,
  AuditPosition,
  AuditQuery,
  AuditReport,
  AuditSubject,
  AuditVia,
} from './letter/audit.ts'
export type { DeniedCall, PruneOptions } from './admin/audit/audit-log.ts'
export type { LineageLetter } from './admin/lineage.ts'
export type { ResultsQuery } from './bulk/bulk.ts'
export type { PlanOptions, UndoOptions } from './bulk/plan-options.ts'
export type { JsonSchema } from './check/payload-schema.ts'
export type { ReplaySafety } from './letter/replay-safety.ts'
export type { AppOptions, QueueOptions, QueuePolicy } from './options/options.ts'
export type { ConfiguredKeys, EncryptionKey, KeyProvider } from './check/encryption-keys.ts'
export type { EraseOptions, Erasure } from './admin/erasure.ts'
export type { Detector } from './policy/redaction/detectors.ts'
export type { RedactOptions } from './policy/redaction/redaction.ts'
export type { Retention } from './policy/retention.ts'
export type { CaptureContext } from './capture/context.ts'
export type { ForeignLetterOptions } from './taps/capture.ts'
export type { Enqueued, GuardedRun, OperationInput } from './capture/operation.ts'
export type { ExecuteContext, ExecutorRun, ResilientExecutor } from './capture/executor/executor.ts'
export {
  resiliencePolicies,
  type BreakerLimits,
  type ExecutorOptions,
  type ResiliencePolicy,
  type RetryOn,
} from './capture/executor/resilience.ts'
export { BulkheadFullError, CircuitBreakerOpenError } from './capture/executor/errors.ts'
export type {
  Enqueuing,
  SkipReason,
  WorkflowCounts,
  WorkflowGuard,
  WorkflowResult,
} from './capture/workflow/workflow.ts'
export type { Strategy, WorkflowOptions } from './capture/workflow/options.ts'
export type { WorkflowFn, WorkflowRun, WorkflowTask } from './capture/workflow/task.ts'
export type { FailedResult } from './letter/result.ts'
export type { LimiterStatus } from './redelivery/flow/limiter.ts'
export type { LiveLoop, LiveMailbox } from './redelivery/live-mailboxes.ts'
export type { Handler, ReplayingHandler, ReplayRoute, Run } from './redelivery/run.ts'
export type { ReplayOutcome } from './letter/result.ts'
export type {
  ActionOptions,
  LetterReplayOptions,
  RetryOptions,
  ReviewInput,
} from './admin/action-input.ts'
export type { EditInput } from './admin/edit-input.ts'
export { patchPayload } from './check/patch-payload.ts'
export type { JsonPatch, JsonPatchOperation } from './letter/json-patch.ts'
export type { BacktestInput } from './admin/backtest.ts'
export type {
  BacktestChange,
  BacktestCounts,
  BacktestGroup,
  BacktestReport,
  BacktestSide,
} from './policy/backtest.ts'
export type { PayloadVersion } from './admin/payload-versions.ts'
export type { BytesFacts, JsonChange, LineChange, PayloadDiff } from './letter/payload-diff.ts'
export type { ImportReport } from './transfer/operation-file/import.ts'
export type { ExportOptions, ExportProgress } from './transfer/lines/export.ts'
export type {
  ImportProgress,
  LetterImportOptions,
  LetterImportReport,
} from './transfer/lines/import.ts'
export { logObserver } from './observers/log.ts'
export { pagerduty, type PagerDutyOptions } from './observers/notify/pagerduty.ts'
export { slack, type SlackOptions } from './observers/notify/slack.ts'
export { webhook, type WebhookOptions } from './observers/notify/webhook.ts'
export { email, type EmailOptions } from './observers/notify/email.ts'
export type { Target, TargetOptions } from './observers/notify/target.ts'
export type { AlertDelivery, TargetTest } from './observers/alerts/alerts.ts'
export type { AlertChange } from './observers/alerts/change.ts'
export { verifySignature } from './backends/http/signature.ts'
export {
  defaultAlertRules,
  type Acknowledgement,
  type Alert,
  type AlertCondition,
  type AlertRule,
} from './policy/alert-rule.ts'
export type {
  FoundGroup,
  Group,
  GroupChange,
  GroupChangeKind,
  GroupDetail,
  GroupExplanation,
  GroupFacet,
  GroupIgnoring,
  GroupNote,
  GroupQuery,
  GroupResolution,
  GroupStatus,
  IgnoreGroupOptions,
  LatestGroupChange,
  ResolveGroupOptions,
  TrendPoint,
} from './letter/group.ts'
export type { FingerprintMatch, FingerprintRule } from './policy/fingerprint-rules.ts'
export type { Health } from './admin/health.ts'
export type { Metrics, MetricsQuery } from './admin/metrics.ts'
export type { Statistics, StatisticsOptions } from './admin/statistics.ts'
export type { KeyRotation, KeyUse, RotateOptions, SpoolStatus } from './store.ts'
export { errorTable, RedriveError, type ErrorCode } from './errors.ts'
export type * from './letter/letter.ts'
export type { LoopCounts, LoopKind, LoopStatus } from './letter/loop-status.ts'
export type { PausedQueue } from './letter/paused-queue.ts'
export { sourceIdOf } from './letter/source-id.ts'
export type { JsonScalar, LetterFilter, LetterQuery, Page } from './letter/query.ts'
export { decodePayload, encodePayload } from './letter/payload.ts'
export { viewPayload } from './letter/payload-view.ts'
export { isLegal, moveTable } from './letter/move-table.ts'
export type { Change } from './letter/moves.ts'
export type { EventOf, EventType, Observer, RedriveEvent } from './observer.ts'
export {
  custom,
  exponential,
  fixed,
  immediate,
  linear,
  never,
  type CustomBackoff,
} from './policy/backoff.ts'
export { classify, type Classification, type Rule, type RuleMatch } from './policy/classify.ts'
export { details, type Detail } from './policy/details.ts'
export { templates, type Template } from './policy/templates.ts'
export {
  DLQPolicy,
  type DLQPolicyOptions,
  type ErrorMatch,
  type PolicyMailbox,
} from './policy/dlq-policy.ts'
export {
  copyStore,
  type CopyOptions,
  type CopyProgress,
  type CopyReport,
} from './transfer/copy/copy.ts'
export type * from './store.ts'
export { systemClock, type Clock } from './clock/clock.ts'
export { loadConfig, type Config, type ConfigSources } from './config/load.ts'
export type * from './mailbox.ts'
export { MainLoop, type LoopResult, type MainLoopOptions } from './loops/main-loop.ts'
export {
  EvalLoop,
  type EvalLoopOptions,
  type EvalRequest,
  type EvalResult,
  type Evaluator,
  type Sample,
  type Score,
} from './loops/eval-loop.ts'
export { DLQConsumer, type DLQConsumerOptions } from './loops/dlq-consumer.ts'
export { type DeadLetterHandler } from './loops/handlers/handler.ts'
export { type HandlerContext } from './loops/handlers/handler.ts'
export { type Handled } from './loops/handlers/handler.ts'
export { LoopGroup, type LoopGroupOptions, type RestartPolicy } from './loops/loop-group.ts'
export type { ProcessContext } from './loops/work.ts'
export type { LoopBreakerOptions } from './loops/loop-breaker.ts'
export type { RequestLoopOptions } from './loops/request-loop-options.ts'
export type { Runnable, RunOptions, ShutdownOptions } from './loops/runnable.ts'
export type { DeadLettering, DeliveredMessage } from './loops/dead-lettering.ts'
export type { DeadMessage, FailedAttempt } from './loops/dead-message.ts'
export {
  mailboxDestination,
  type Destination,
  type LetterDestinationOptions,
  type MailboxDestinationOptions,
} from './loops/destination.ts'
export { Heartbeat } from './loops/heartbeat.ts'
export { dlqHealth, type DlqHealth, type DlqHealthOptions } from './loops/dlq-health.ts'
export type { QueueDepth } from './loops/queue-depth.ts'
export { metricsOf } from './loops/metrics.ts'
export type { Metric } from './observers/metrics/metric.ts'
export { logLoop, type LoopLogger } from './loops/log.ts'
export type { LoopEvent } from './loops/events.ts'
export { alertHandler, type AlertOptions } from './loops/handlers/alert.ts'
export {
  replay,
  replayHandler,
  type Replayed,
  type ReplayOptions,
} from './loops/handlers/replay.ts'
export {
  selectiveReplay,
  type ReplayResult,
  type SelectiveReplay,
  type SelectiveReplayOptions,
} from './loops/handlers/selective-replay.ts'
export { dedupedReplay, recordedSeen, type SeenSet } from './loops/handlers/deduped-replay.ts'
export { deadLetterName } from './mailboxes/dead-letter-name.ts'
export { openMailbox, resolverOf, type OpenMailboxOptions } from './connect/mailbox.ts'
export { returnToSource, type ReturnToSourceOptions } from './taps/return-to-source.ts'
export type { ForeignLetter, Keep, ReturnedLetter, Tap } from './taps/tap.ts'
