import { columns, type Column } from '../rows/columns.ts'

/**
 * The schema that `migrations[0]` creates. Files with a lower version were written before the first
 * release and are refused.
 */
export const firstVersion = 4

/**
 * Migrations from each version to the next, in one transaction. Existing files went through these
 * statements: append, never edit.
 *
 * `letters` has what changes, one row per letter: see `rows/columns.ts`. `bodies` has what never
 * changes after capture, so that a settle does not rewrite the payload; `edits` has the newest
 * payload if it was edited. Bytes that are UTF-8 are stored as TEXT. `deps` has the ids of letters
 * that are not resolved yet. The counters of a queue are stored together, so that a capture writes
 * one page of them.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE letters (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    category INTEGER NOT NULL,
    severity INTEGER NOT NULL,
    recoverability INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    reason INTEGER,
    archived_from INTEGER,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    occurrences INTEGER NOT NULL,
    replays INTEGER NOT NULL,
    backoff_ms REAL NOT NULL,
    updated_at INTEGER NOT NULL,
    retry_at INTEGER,
    settled_at INTEGER,
    expires_at INTEGER,
    budget_since INTEGER,
    deferred_since INTEGER,
    wait INTEGER,
    due_at INTEGER,
    worker TEXT,
    leased_until INTEGER,
    fingerprint TEXT NOT NULL,
    omitted INTEGER NOT NULL,
    unmet INTEGER NOT NULL,
    policy_json TEXT,
    tags TEXT,
    headers TEXT,
    metadata TEXT,
    failure TEXT,
    review TEXT,
    edit TEXT,
    history TEXT NOT NULL,
    id BLOB NOT NULL,
    captured_at INTEGER NOT NULL,
    lane TEXT,
    tenant TEXT,
    source_id TEXT,
    dedupe BLOB
  ) STRICT;
  -- get, apply, renew and remove by id, find without a queue
  CREATE UNIQUE INDEX letters_id ON letters (id);
  -- find by queue and state, newest or oldest first
  CREATE INDEX letters_list ON letters (queue, state, id);
  -- claim, find in the order of due times
  CREATE INDEX letters_due ON letters (queue, wait, priority, due_at, id) WHERE due_at IS NOT NULL;
  -- find, remove and evict in the order in which letters came to rest
  CREATE INDEX letters_settled ON letters (queue, state, settled_at, id) WHERE settled_at IS NOT NULL;
  -- find by group
  CREATE INDEX letters_group ON letters (fingerprint, id);
  -- add: the open letter with a dedupe key
  CREATE INDEX letters_dedupe ON letters (queue, dedupe, id)
    WHERE dedupe IS NOT NULL AND state NOT IN (2, 5);
  -- find by lane
  CREATE INDEX letters_lane ON letters (lane, id) WHERE lane IS NOT NULL;
  -- the oldest active letters of a lane, and the one in flight
  CREATE INDEX letters_lane_head ON letters (queue, lane, id) WHERE lane IS NOT NULL AND state < 2;
  CREATE INDEX letters_lane_busy ON letters (queue, lane) WHERE lane IS NOT NULL AND state = 1;
  -- find by tenant, source id, expiry, unresolved dependencies
  CREATE INDEX letters_tenant ON letters (tenant, id) WHERE tenant IS NOT NULL;
  CREATE INDEX letters_source ON letters (source_id, id) WHERE source_id IS NOT NULL;
  CREATE INDEX letters_expires ON letters (expires_at, id) WHERE expires_at IS NOT NULL;
  CREATE INDEX letters_unmet ON letters (id) WHERE unmet > 0;

  CREATE TABLE bodies (
    seq INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    origin_crc INTEGER NOT NULL,
    bytes ANY NOT NULL,
    bytes_crc INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE edits (seq INTEGER PRIMARY KEY, bytes ANY NOT NULL, bytes_crc INTEGER NOT NULL) STRICT;
  -- find by tag
  CREATE TABLE tags (tag TEXT, id BLOB, seq INTEGER NOT NULL, PRIMARY KEY (tag, id))
    STRICT, WITHOUT ROWID;
  CREATE TABLE deps (seq INTEGER, id TEXT, PRIMARY KEY (seq, id)) STRICT, WITHOUT ROWID;
  -- the letters that depend on a resolved one
  CREATE INDEX deps_id ON deps (id, seq);

  CREATE TABLE counters (
    queue INTEGER,
    kind INTEGER,
    name TEXT,
    code INTEGER,
    n INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    backoff_ms REAL NOT NULL,
    PRIMARY KEY (queue, kind, name, code)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE records (
    kind TEXT,
    id TEXT,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  `,
]

/** Version in `meta` under "schema". A file with a higher one was written by a newer Redrive. */
export const schemaVersion = firstVersion + migrations.length - 1

/** The id of a letter in SQL, from a parameter or a value: 16 bytes. Null: it is not a UUID. */
export const idOf = (value: string): string => `unhex(${value}, '-')`

/** A parameter for each column of a row. */
export const rowParameters = columns.map((name) => (name === 'id' ? idOf('?') : '?')).join(', ')

/** Columns that only statements use. They are read as null. */
const unread = new Set<Column>(['wait', 'due_at', 'unmet', 'source_id', 'dedupe'])

/** The columns of a row as they are read. The id is 32 hexadecimal digits. */
export const readColumns = columns
  .map((name) => (unread.has(name) ? 'NULL' : name === 'id' ? 'hex(letters.id)' : name))
  .join(', ')
