/** One thing that the four founding designs ask for. A row is held by the tests whose titles quote it. */
export interface Row {
  id: string
  text: string
  /** False: asked for, and not built yet. */
  due: boolean
}

const row = (id: string, text: string): Row => ({ id, text, due: true })
const later = (id: string, text: string): Row => ({ id, text, due: false })

/** What the mailbox (M), operation (O), workflow (W) and pipeline (P) designs ask, row by row. */
export const rows: readonly Row[] = [
  row(
    'M1',
    'Mailbox: send, receive (max 1–10, visibility 0–43,200 s, long poll that returns on the first message), acknowledge, nack with delay, extend (never shortens), reply, purge, approximateCount, close; a fresh receipt handle per delivery; stale handles refused; typed errors',
  ),
  row(
    'M2',
    'mailboxes on memory, SQLite, Postgres, Redis, RabbitMQ, NATS JetStream, SQS, Kafka pass one contract suite; what a broker cannot do is declared in its powers',
  ),
  row(
    'M3',
    'DLQPolicy with maxDeliveryCount, includeErrors, excludeErrors, overridable shouldDeadLetter; ErrorBudgetPolicy example works',
  ),
  row(
    'M4',
    'DeadLetter has every field of the seed: message id, body, source mailbox, delivery count, last error and its type, dead-lettered at, first received at, request id, reply-to, trace id',
  ),
  row(
    'M5',
    'MainLoop: receive → process → reply → acknowledge; failure → policy → nack min(60·n, 900) s or dead-letter: durable write, then error reply, then acknowledge',
  ),
  row(
    'M6',
    'no reply before a terminal outcome; a failing reply never stops dead-lettering; a failing DLQ write never ends the loop nor acknowledges',
  ),
  row(
    'M7',
    'EvalLoop mirrors it: sample, evaluator, score, latency; a dead-lettered eval replies with a failed score',
  ),
  row(
    'M8',
    'DLQConsumer is a runnable: handler, visibility timeout, 1 h backoff, shutdown that waits, running, heartbeat',
  ),
  row(
    'M9',
    'handlers shipped: alert, replay (resolves reply-to), selective replay by predicate over the whole queue, deduplicated replay',
  ),
  row(
    'M10',
    'LoopGroup: loops together, health port, watchdog, signals, one loop’s crash is surfaced, shutdown reaches all',
  ),
  row(
    'M11',
    'metrics: the seed’s seven names, emitted at the transition; structured logs with the seed’s fields',
  ),
  row(
    'M12',
    'health check with DLQ depth and threshold; degraded, not an exception, when the backend is down',
  ),
  row(
    'M13',
    'retention per queue (3 days source, 30 days DLQ), per letter, never by losing a whole queue',
  ),
  row(
    'M14',
    'beyond its limits: automatic replay, cross-backend, transformation on replay, priority, routing of errors to different DLQs',
  ),
  row(
    'M15',
    'a message that kills the process, and a body that cannot be decoded, are dead-lettered too',
  ),
  row(
    'O1',
    'the item with all its fields and history; six states; four priorities, critical first and immediate',
  ),
  row(
    'O2',
    'enqueue, retry, markSuccess, markFailed, markForManualReview, getItems with filter (sorted, then limited), getItem, getStats, deleteItem, clear; each under the name of our vocabulary, guarded by the state machine',
  ),
  row(
    'O3',
    'config: maxItems with an overflow policy, maxRetries, default priority, backoff (initial, max, multiplier), process interval, batch size, maxConcurrent, cleanup age and automatic cleanup, storage memory/file/database',
  ),
  row(
    'O4',
    'automatic processing in the background; handlers for llm_call, github_api, tool_execution, verification can be registered; an unknown type is parked no-handler, not burnt',
  ),
  row(
    'O5',
    'persistence survives kill -9 at any point; a corrupt file is never overwritten; two processes are safe',
  ),
  row(
    'O6',
    'ResilientExecutor with named policies (llm, github, tool, verification: attempts, delays, jitter, timeouts, breaker, fallback), error detection, capture, rethrow of the original error',
  ),
  row(
    'O7',
    'metrics: every counter and average of the seed, exact, and getSummary() as text; success and abandonment rates',
  ),
  row(
    'O8',
    'manual review: needed on entry, decided with actor, note and decision (requeue, resolve, discard)',
  ),
  later(
    'O9',
    'phases 2 and 3 of its plan: dashboard, database storage, health monitoring, cleanup, admin API, notifications',
  ),
  row('O10', 'the seed’s three unit tests pass in our vocabulary'),
  row('O11', 'import of the seed’s JSON file (.duyetbot-dlq.json shape) and export to it'),
  row(
    'W1',
    'retry policies never, linear (5, 10, 15 … min), exponential (1, 2, 4 … 60 min), immediate, with the seed’s formulas',
  ),
  row(
    'W2',
    'automatic classification into the seed’s categories with their default policies; its wrong examples classified right',
  ),
  row(
    'W3',
    'strategies automatic, selective, manual, disabled, switchable at run time; the result says enqueued or why not',
  ),
  row(
    'W4',
    'task id, task, repos (targets), error, metadata, adapter kept; retried with the same context; a returned failed/partial status is a failure',
  ),
  row(
    'W5',
    'background processor start/stop (drains), interval, parallel within a bound, circuit breaker respected',
  ),
  row('W6', 'list, get, retry now, archive, restore, clear with confirmation; pages past 100'),
  row(
    'W7',
    'statistics: size, max, utilisation, breakdown by state, category, policy, lifetime totals that survive restarts, processor running, interval',
  ),
  row(
    'W8',
    'settings with the seed’s names and bounds, from YAML and environment; a wrong value is refused with the allowed ones',
  ),
  row(
    'W9',
    'OpenSearch store: the seed’s index fields with explicit mapping, its three example queries work; reload after restart; fallback by spool',
  ),
  row('W10', 'monitoring rules: utilisation > 80 %, exhausted > 100, success rate < 50 %'),
  later('W11', 'access control per operation (RBAC), encryption of sensitive data'),
  row(
    'W12',
    'its future list: priority queues, web UI, automatic alerting on exhausted, task dependencies, custom backoff, templates for common failure patterns, incident-management integration',
  ),
  row(
    'P1',
    'one topic per node dlq.{cluster_id}.{node-uuid}, created when missing, override per node',
  ),
  row(
    'P2',
    'the trigger table: unreachable, timeout, refused, repeated transient, malformed, max hops → DLQ; success=false → not',
  ),
  row(
    'P3',
    'DlqMessage and DlqConfig in protobuf, wire-compatible with the seed’s fields; defaults applied explicitly',
  ),
  row(
    'P4',
    'in-place retries with linear backoff that do not block the consumer’s poll; DLQ publish awaited from the broker before the offset is committed; commits only over a contiguous prefix',
  ),
  row(
    'P5',
    'logical failure: history entry and routing to the next nodes with the original document',
  ),
  row(
    'P6',
    'replay by CLI and by POST /admin/dlq/{nodeId}/replay: unwraps, keeps key and headers, filter, limit, rate, dry run, checkpoint, reprocess count, quarantine at the limit, hop budget reset and recorded',
  ),
  row(
    'P7',
    'Prometheus metrics and the two alert rules of the seed, with node label, and they fire in a test',
  ),
  row(
    'P8',
    'runs on a real Kafka broker, several consumers in a group, rebalance and kill -9 without loss',
  ),
  row('P9', 'large documents by reference; payload removal by key (right to be forgotten)'),
]

/** The title of the tests that hold a row: its id and its text. */
export function quote(id: string): string {
  const found = rows.find((candidate) => candidate.id === id)
  if (!found) throw new TypeError(`there is no row ${id}`)
  return `${found.id}: ${found.text}`
}
