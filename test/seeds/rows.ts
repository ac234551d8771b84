/**
 * One requirement of the four founding designs. A row is fulfilled when all its clauses are, and a
 * clause when its tests pass: those that carry its title, and those that it names.
 */
export interface Row {
  readonly id: string
  readonly clauses: readonly Clause[]
}

export interface Clause {
  readonly text: string
  /** Tests elsewhere that prove the clause. Each must pass. */
  readonly tests: readonly NamedTest[]
}

/**
 * A file, and a part of the title of a test in it that also appears in the source. A check of the
 * mailbox contract (src/testing/mailbox) must pass on every broker that has what it needs.
 */
export interface NamedTest {
  readonly file: string
  readonly title: string
}

function define(id: string, ...clauses: (string | Clause)[]): Row {
  return {
    id,
    clauses: clauses.map((one) => (typeof one === 'string' ? { text: one, tests: [] } : one)),
  }
}

/** A clause whose tests are in other folders. */
function proven(text: string, ...tests: [file: string, title: string][]): Clause {
  return { text, tests: tests.map(([file, title]) => ({ file, title })) }
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
    proven(
      'Mailbox: send, receive, acknowledge',
      ['src/testing/mailbox/send.ts', 'returns a unique message id'],
      ['src/testing/mailbox/receive.ts', 'delivers in the order of sending'],
      ['src/testing/mailbox/settle.ts', 'deletes an acknowledged message permanently'],
      ['src/testing/mailbox/settle.ts', 'accepts one of many concurrent acknowledges'],
      [
        'src/testing/mailbox/concurrency.ts',
        'delivers each message to one of many receivers, once',
      ],
    ),
    proven(
      'receive (max 1–10, visibility 0–43,200 s)',
      ['src/testing/mailbox/receive.ts', 'rejects invalid options, without receiving a message'],
      [
        'src/testing/mailbox/receive.ts',
        'delivers with visibilitySeconds 0, so that the next receive gets the message too',
      ],
      ['src/testing/mailbox/settle.ts', 'rejects a nack delay or an extension out of range'],
    ),
    proven(
      'long poll that returns on the first message',
      [
        'src/testing/mailbox/receive.ts',
        'returns a message that is sent during the wait, without waiting for more',
      ],
      ['src/testing/mailbox/receive.ts', 'returns an empty array after waitSeconds'],
    ),
    proven(
      'nack with delay',
      ['src/testing/mailbox/settle.ts', 'redelivers a nacked message at once'],
      ['src/testing/mailbox/settle.ts', 'redelivers a nacked message after its delay, not before'],
      ['src/testing/mailbox/counts.ts', 'counts a nack as a failure unless it has failed: false'],
    ),
    proven(
      'extend (never shortens)',
      ['src/testing/mailbox/settle.ts', 'never shortens a receipt by extending it'],
      ['src/testing/mailbox/settle.ts', 'hides a message until the end of its extension'],
    ),
    proven(
      'reply',
      [
        'src/testing/mailbox/replies.ts',
        'is sent to the replyTo mailbox, with the id of the request in a header',
      ],
      ['src/testing/mailbox/replies.ts', 'can be sent several times until the message is settled'],
      ['src/testing/mailbox/replies.ts', 'is rejected if the message has no replyTo'],
      ['src/testing/mailbox/settle.ts', 'rejects every call on a nacked message'],
      ['src/testing/mailbox/settle.ts', 'rejects every call on an acknowledged message'],
    ),
    proven(
      'purge, approximateCount',
      ['src/testing/mailbox/counts.ts', 'counts waiting, in-flight and delayed messages'],
      [
        'src/testing/mailbox/counts.ts',
        'purges waiting and in-flight messages, and returns their number',
      ],
      ['src/testing/mailbox/counts.ts', 'expires the receipts of in-flight messages on purge'],
    ),
    proven(
      'close',
      ['src/testing/mailbox/lifecycle.ts', 'resolves waiting receives when it is closed'],
      [
        'src/testing/mailbox/lifecycle.ts',
        'rejects calls after close with CLOSED; receive returns no messages',
      ],
    ),
    proven(
      'a fresh receipt handle per delivery',
      [
        'src/testing/mailbox/settle.ts',
        'rejects the receipt of an earlier delivery without affecting the later one',
      ],
      ['src/testing/mailbox/counts.ts', 'counts a delivery whose visibility expired'],
    ),
    proven(
      'stale handles refused',
      [
        'src/testing/mailbox/settle.ts',
        'rejects the receipt of an earlier delivery without affecting the later one',
      ],
      [
        'src/testing/mailbox/settle.ts',
        'rejects an expired receipt even if no other receiver got the message',
      ],
    ),
    proven(
      'typed errors',
      ['src/testing/mailbox/send.ts', 'delivers an undecodable body together with valid ones'],
      ['src/testing/mailbox/send.ts', 'rejects a body above maxBodyBytes, and sends nothing'],
    ),
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
    proven(
      'a message that kills the process is dead-lettered too',
      [
        'test/loops/dead-lettering.test.ts',
        'is dead-lettered once it has killed its workers too often',
      ],
      ['test/crash/mailbox.test.ts', 'lose nothing in'],
    ),
    'a body that cannot be decoded is dead-lettered too',
    proven(
      'also with excludeErrors set, a process-killing message runs at most maxDeliveryCount times',
      [
        'test/loops/dead-lettering.test.ts',
        'kills at most maxDeliveryCount processes, in addition to its excluded failures',
      ],
      [
        'test/loops/dead-lettering.test.ts',
        'is dead-lettered after maxDeliveryCount deliveries, on a broker that',
      ],
    ),
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
    proven('persistence survives kill -9 at any point', [
      'test/crash/crash.test.ts',
      'keeps every promise of',
    ]),
    'a corrupt file is never overwritten',
    proven(
      'two processes are safe',
      ['test/stores/sqlite/processes.test.ts', 'stores and counts what four processes add at once'],
      ['test/stores/sqlite/processes.test.ts', 'gives each letter to one of four processes'],
    ),
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
    proven('phases 2 and 3 of its plan: dashboard', [
      'test/web/letter-actions.test.ts',
      'retries a letter',
    ]),
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
    proven("OpenSearch store: the seed's index fields with explicit mapping", [
      'test/stores/opensearch/documents.test.ts',
      'have the fields and the types of the design',
    ]),
    proven(
      'its three example queries work',
      ['test/stores/opensearch/documents.test.ts', 'find all exhausted tasks'],
      [
        'test/stores/opensearch/documents.test.ts',
        'find tasks by error category, with the names of the design',
      ],
      ['test/stores/opensearch/documents.test.ts', 'find tasks ready for retry in the next hour'],
    ),
    proven('reload after restart', [
      'test/stores/opensearch/opening.test.ts',
      'keeps letters, totals, leases and records across a restart',
    ]),
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
    proven(
      'web UI',
      [
        'test/web/flows.test.ts',
        'announces a letter, which can then be opened, edited, retried and resolved',
      ],
      [
        'test/web/flows.test.ts',
        'stops a retry of a group at its first letters, and continues after the fix',
      ],
    ),
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
    proven('the trigger table: unreachable → DLQ', [
      'test/pipeline/node.test.ts',
      'retries transient failures, and dead-letters after the last, byte for byte',
    ]),
    proven('timeout → DLQ', [
      'test/pipeline/node.test.ts',
      'gives up on a module that does not answer, while others continue',
    ]),
    'refused → DLQ',
    'repeated transient → DLQ',
    proven('malformed → DLQ', [
      'test/pipeline/node.test.ts',
      'stores a record that is not a stream raw, and continues',
    ]),
    proven('max hops → DLQ', [
      'test/pipeline/node.test.ts',
      'dead-letters a stream that passed too many nodes',
    ]),
    proven('success=false → not', [
      'test/pipeline/node.test.ts',
      'passes on a document that a module rejects, unchanged and marked in the stream',
    ]),
    'service discovery down counts as unreachable',
  ),
  define(
    'P3',
    "DlqMessage and DlqConfig in protobuf, wire-compatible with the seed's fields",
    'defaults applied explicitly (enabled true, 3 retries)',
  ),
  define(
    'P4',
    proven(
      "in-place retries with linear backoff that do not block the consumer's poll",
      [
        'test/pipeline/caller.test.ts',
        'wait n times the backoff before retry n, and give up after the last',
      ],
      [
        'test/pipeline/node.test.ts',
        'gives up on a module that does not answer, while others continue',
      ],
    ),
    'DLQ publish awaited from the broker before the offset is committed',
    proven('commits only over a contiguous prefix', [
      'test/pipeline/reader.test.ts',
      'commits up to the first unfinished record, and remembers which later ones are done',
    ]),
  ),
  define(
    'P5',
    proven('logical failure: history entry', [
      'test/pipeline/node.test.ts',
      'passes on a document that a module rejects, unchanged and marked in the stream',
    ]),
    proven('routing to the next nodes with the original document', [
      'test/pipeline/node.test.ts',
      'passes on a document that a module rejects, unchanged and marked in the stream',
    ]),
  ),
  define(
    'P6',
    proven('replay by CLI', [
      'test/cli/commands/pipeline.test.ts',
      'replays a node, and prints the outcome of its records',
    ]),
    'by POST /admin/dlq/{nodeId}/replay',
    proven('unwraps, keeps key and headers', [
      'test/pipeline/replay/replay.test.ts',
      'returns dead records unchanged, with their lineage in a header',
    ]),
    proven('filter', [
      'test/pipeline/replay/replay.test.ts',
      'sends matching records up to the limit, and the next ones the next time',
    ]),
    proven('limit', [
      'test/pipeline/replay/replay.test.ts',
      'sends matching records up to the limit, and the next ones the next time',
    ]),
    proven('rate', ['test/pipeline/replay/replay.test.ts', 'respects its rate limit']),
    proven('dry run', [
      'test/pipeline/replay/replay.test.ts',
      'counts without side effects in a dry run',
    ]),
    proven('checkpoint', [
      'test/pipeline/replay/replay.test.ts',
      'continues where it was stopped, and sends nothing twice',
    ]),
    'reprocess count',
    'quarantine at the limit',
    proven('hop budget reset and recorded', [
      'test/pipeline/replay/replay.test.ts',
      'resets the hops of a stream that went too far, and adds that to its history',
    ]),
  ),
  define(
    'P7',
    proven(
      'Prometheus metrics with node label',
      ['test/pipeline/metrics/metrics.test.ts', 'counts events of nodes'],
      [
        'test/pipeline/metrics/metrics.test.ts',
        'reports how many dead records are open, and the age of the oldest',
      ],
    ),
    proven(
      'the two alert rules of the seed, and they fire in a test',
      [
        'test/pipeline/metrics/metrics.test.ts',
        'has valid rules, which fire when they must and not before',
      ],
      ['test/pipeline/metrics/metrics.test.ts', 'raises DLQDepthHigh after five minutes'],
      ['test/pipeline/metrics/metrics.test.ts', 'raises DLQGrowing after ten minutes'],
    ),
    'served over HTTP',
  ),
  define(
    'P8',
    proven(
      'runs on a real Kafka broker, several consumers in a group, rebalance and kill -9 without loss',
      [
        'test/crash/pipeline.test.ts',
        'lose nothing and send nothing twice in transactions, even when the broker is killed',
      ],
      [
        'test/pipeline/reader.test.ts',
        'shares partitions with members that join, and loses nothing when members join and leave',
      ],
    ),
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
  const clauses = find(id).clauses.map((one) => one.text)
  if (!clauses.includes(text)) {
    const known = clauses.map((one) => `\n  ${one}`)
    throw new TypeError(`row ${id} has no clause "${text}"; it has:${known.join('')}`)
  }
  return titleOf(id, text)
}
