/**
 * One requirement of the four founding designs. A row is fulfilled when all its clauses are, and a
 * clause when it has a passing test.
 */
export interface Row {
  readonly id: string
  readonly clauses: readonly string[]
}

function define(id: string, ...clauses: string[]): Row {
  return { id, clauses }
}

const brokers = [
  'memory',
  'SQLite',
  'Postgres',
  'Redis',
  'RabbitMQ',
  'NATS JetStream',
  'SQS',
  'Kafka',
]

/** The requirements of the mailbox (M), operation (O), workflow (W) and pipeline (P) designs. */
export const rows: readonly Row[] = [
  define(
    'M1',
    'Mailbox: send, receive, acknowledge',
    'receive (max 1–10, visibility 0–43,200 s)',
    'long poll that returns on the first message',
    'nack with delay',
    'extend (never shortens)',
    'reply',
    'purge, approximateCount',
    'close',
    'a fresh receipt handle per delivery',
    'stale handles refused',
    'typed errors',
  ),
  define(
    'M2',
    ...brokers.map((broker) => `mailboxes on ${broker} pass one contract suite`),
    'what a broker cannot do is declared in its powers',
  ),
  define(
    'M3',
    'DLQPolicy with maxDeliveryCount',
    'includeErrors',
    'excludeErrors',
    'overridable shouldDeadLetter',
    'ErrorBudgetPolicy example works',
    "the seed's own shape, a policy that carries its mailbox (dlq: new DLQPolicy({ mailbox, … })), works",
    'unknown options are refused by name',
  ),
  define(
    'M4',
    'DeadLetter has every field of the seed: message id, body, source mailbox, delivery count, last error and its type, dead-lettered at, first received at, request id, reply-to, trace id',
  ),
  define(
    'M5',
    'MainLoop: receive → process → reply → acknowledge',
    'failure → policy → nack min(60·n, 900) s',
    'or dead-letter: durable write, then error reply "Dead-lettered after N attempts: …", then acknowledge',
  ),
  define(
    'M6',
    'no reply before a terminal outcome',
    'a failing reply never stops dead-lettering',
    'a failing DLQ write never ends the loop nor acknowledges',
  ),
  define(
    'M7',
    'EvalLoop mirrors it: sample, evaluator, score, latency',
    'a dead-lettered eval replies with a failed score',
  ),
  define(
    'M8',
    'DLQConsumer is a runnable: handler',
    'visibility timeout',
    '1 h backoff',
    'shutdown that waits',
    'running, heartbeat',
  ),
  define(
    'M9',
    'handlers shipped: alert',
    'replay (resolves reply-to)',
    'selective replay by predicate over the whole queue',
    'deduplicated replay',
    'a handler that is missing or is not a handler is refused and never acknowledges anything',
  ),
  define(
    'M10',
    'LoopGroup: loops together',
    'health port (/health/live, /health/ready)',
    'watchdog',
    'signals',
    "one loop's crash is surfaced",
    'shutdown reaches all',
  ),
  define(
    'M11',
    "metrics: the seed's seven names, emitted at the transition",
    "structured logs with the seed's fields",
    'exported (Prometheus, OpenTelemetry)',
    'also when dead messages are kept as letters',
    'depth and age are reported without traffic',
    'the alert handler counts dlq.messages by source and error type',
  ),
  define(
    'M12',
    'health check with DLQ depth and threshold',
    'degraded, not an exception, when the backend is down',
  ),
  define(
    'M13',
    'retention per queue and per letter',
    'never by losing a whole queue',
    'a dead letter queue keeps for ever unless a retention is set (the seed suggests 30 days)',
    'expiry raises an event',
    'settable on every broker that can, refused with a reason where it cannot',
  ),
  define(
    'M14',
    'beyond its limits: automatic replay',
    'cross-backend',
    'transformation on replay',
    'priority',
    'routing of errors to different DLQs',
    'a letter of a loop can be replayed to its source mailbox, counted and limited',
  ),
  define(
    'M15',
    'a message that kills the process is dead-lettered too',
    'a body that cannot be decoded is dead-lettered too',
    'also with excludeErrors set, a process-killing message runs at most maxDeliveryCount times',
  ),
  define(
    'O1',
    'the item with all its fields and history',
    'six states',
    'four priorities, critical first and immediate',
  ),
  define(
    'O2',
    'enqueue',
    'retry',
    'markSuccess',
    'markFailed',
    'markForManualReview',
    'getItems with filter (sorted, then limited)',
    'getItem',
    'getStats',
    'deleteItem',
    'clear',
    'each under the name of our vocabulary, guarded by the state machine',
    'average retry count in the statistics',
  ),
  define(
    'O3',
    'config: maxItems with an overflow policy',
    'maxRetries, default priority',
    'backoff (initial, max, multiplier)',
    'process interval',
    'batch size',
    'maxConcurrent',
    'cleanup age and automatic cleanup',
    'storage memory/file/database',
    "a page maps the seed's option names to ours",
    'a seed name that is given is refused with ours as the hint',
  ),
  define(
    'O4',
    'automatic processing in the background',
    'handlers for llm_call, github_api, tool_execution, verification can be registered',
    'an unknown type is parked no-handler, not burnt',
  ),
  define(
    'O5',
    'persistence survives kill -9 at any point',
    'a corrupt file is never overwritten',
    'two processes are safe',
  ),
  define(
    'O6',
    'ResilientExecutor with named policies (llm, github, tool, verification: attempts, delays, jitter, timeouts)',
    'breaker',
    'fallback',
    'error detection',
    'capture',
    'rethrow of the original error',
  ),
  define(
    'O7',
    'metrics: every counter and average of the seed, exact',
    'getSummary() as text',
    'success and abandonment rates',
    'exact on every path (retry, fail, review at capture)',
    'breakdown by severity and source',
  ),
  define(
    'O8',
    'manual review: needed on entry',
    'decided with actor, note and decision (requeue, resolve, discard)',
  ),
  define(
    'O9',
    'phases 2 and 3 of its plan: dashboard',
    'database storage',
    'health monitoring',
    'cleanup',
    'admin API',
    'notifications',
  ),
  define('O10', "the seed's three unit tests pass in our vocabulary"),
  define(
    'O11',
    "import of the seed's JSON file (.duyetbot-dlq.json shape)",
    'export to it',
    "the error's name and the seed's 33 category names survive the import",
    'the group equals that of a live capture',
  ),
  define(
    'W1',
    'retry policies never',
    'linear (5, 10, 15 … min)',
    'exponential (1, 2, 4 … 60 min)',
    "immediate, with the seed's formulas",
  ),
  define(
    'W2',
    "automatic classification into the seed's categories with their default policies",
    'the wrong examples classified right',
    'retry limits per category (5/3/2/0 in the seed) as an option',
  ),
  define(
    'W3',
    'strategies automatic, selective, manual, disabled',
    'switchable at run time',
    'the result says enqueued or why not',
  ),
  define(
    'W4',
    'task id, task, repos (targets), error, metadata, adapter kept',
    'retried with the same context',
    'a returned failed/partial status is a failure',
    "found by the workflow's own id and by metadata on every store",
  ),
  define(
    'W5',
    'background processor start/stop (drains)',
    'interval',
    'parallel within a bound',
    'circuit breaker respected',
  ),
  define(
    'W6',
    'list, get',
    'retry now',
    'archive, restore',
    'clear with confirmation',
    'pages past 100',
    'retry can wait for and report its outcome',
  ),
  define(
    'W7',
    'statistics: size, max, utilisation',
    'breakdown by state, category, policy',
    'lifetime totals that survive restarts',
    'processor running, interval',
  ),
  define(
    'W8',
    "settings with the seed's names and bounds",
    'from YAML and environment',
    'a wrong value is refused with the allowed ones',
    'an embedding application can load the same settings',
    'disabling stops capture',
  ),
  define(
    'W9',
    "OpenSearch store: the seed's index fields with explicit mapping",
    'its three example queries work',
    'reload after restart',
    'fallback by spool, also when the store is away at start',
    "task_id and task are the workflow's",
    "the seed's index name works",
    'its category words match',
  ),
  define('W10', 'monitoring rules: utilisation > 80 %', 'exhausted > 100', 'success rate < 50 %'),
  define('W11', 'access control per operation (RBAC)', 'encryption of sensitive data'),
  define(
    'W12',
    'its future list: priority queues',
    'web UI',
    'automatic alerting on exhausted',
    'task dependencies',
    'custom backoff',
    'templates for common failure patterns',
    'incident-management integration',
  ),
  define(
    'P1',
    'one topic per node dlq.{cluster_id}.{node-uuid}',
    'created when missing',
    'override per node',
  ),
  define(
    'P2',
    'the trigger table: unreachable → DLQ',
    'timeout → DLQ',
    'refused → DLQ',
    'repeated transient → DLQ',
    'malformed → DLQ',
    'max hops → DLQ',
    'success=false → not',
    'service discovery down counts as unreachable',
  ),
  define(
    'P3',
    "DlqMessage and DlqConfig in protobuf, wire-compatible with the seed's fields",
    'defaults applied explicitly (enabled true, 3 retries)',
  ),
  define(
    'P4',
    "in-place retries with linear backoff that do not block the consumer's poll",
    'DLQ publish awaited from the broker before the offset is committed',
    'commits only over a contiguous prefix',
  ),
  define(
    'P5',
    'logical failure: history entry',
    'routing to the next nodes with the original document',
  ),
  define(
    'P6',
    'replay by CLI',
    'by POST /admin/dlq/{nodeId}/replay',
    'unwraps, keeps key and headers',
    'filter',
    'limit',
    'rate',
    'dry run',
    'checkpoint',
    'reprocess count',
    'quarantine at the limit',
    'hop budget reset and recorded',
  ),
  define(
    'P7',
    'Prometheus metrics with node label',
    'the two alert rules of the seed, and they fire in a test',
    'served over HTTP',
  ),
  define(
    'P8',
    'runs on a real Kafka broker, several consumers in a group, rebalance and kill -9 without loss',
  ),
  define('P9', 'large documents by reference', 'payload removal by key (right to be forgotten)'),
]

const byId = new Map(rows.map((one) => [one.id, one]))

function find(id: string): Row {
  const found = byId.get(id)
  if (!found) throw new TypeError(`there is no row ${id}`)
  return found
}

/** The title of a clause, alone or as the title around its tests. */
export function titleOf(id: string, text: string): string {
  return `${id}: ${text}`
}

/** The title around the tests of a row. */
export function row(id: string): string {
  return find(id).id
}

/** The title of a test or a `describe` for one clause. Throws unless the row has the clause. */
export function clause(id: string, text: string): string {
  const { clauses } = find(id)
  if (!clauses.includes(text)) {
    const known = clauses.map((one) => `\n  ${one}`)
    throw new TypeError(`row ${id} has no clause "${text}"; it has:${known.join('')}`)
  }
  return titleOf(id, text)
}
