import type { Database, Migration } from '../../backends/sqlite/database.ts'
import { isCorrupt } from '../../backends/sqlite/errors.ts'
import { sourceKeyIn } from '../rows/source-key.ts'

/**
 * Version in `meta` under "schema". A file with a higher one was written by a newer Redrive.
 */
export const schemaVersion = 3

/**
 * Migrations from each version to the next, in one transaction. Existing files went through these
 * very statements: append, never edit.
 *
 * `letters` has what changes, one short row a letter. `bodies` has what never changes after
 * capture, so that a settle does not rewrite the payload. `wait` and `due_at` say where a letter
 * waits and until when; they follow from the rest. `counters` has how many letters there are of
 * each kind, and what ever happened to letters; the rows of a queue stand together, so that a
 * capture touches one page of them.
 */
export const migrations: readonly Migration[] = [
  `
  CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE letters (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    category INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    reason TEXT,
    fingerprint TEXT NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    backoff_ms REAL NOT NULL,
    retry_at TEXT,
    settled_at TEXT,
    expires_at TEXT,
    dead_lettered_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    worker TEXT,
    leased_until TEXT,
    lane TEXT,
    tenant TEXT,
    dependent INTEGER NOT NULL,
    tagged INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    omitted INTEGER NOT NULL,
    rest TEXT NOT NULL,
    crc INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    dedupe BLOB,
    wait INTEGER,
    due_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX letters_id ON letters (id);
  CREATE INDEX letters_list ON letters (queue, state, id);
  CREATE INDEX letters_due ON letters (queue, wait, priority, due_at, id) WHERE due_at IS NOT NULL;
  CREATE INDEX letters_settled ON letters (queue, state, settled_at, id) WHERE settled_at IS NOT NULL;
  CREATE INDEX letters_group ON letters (fingerprint, id);
  CREATE INDEX letters_dedupe ON letters (queue, dedupe, id)
    WHERE dedupe IS NOT NULL AND state NOT IN (2, 5);
  CREATE INDEX letters_lane ON letters (lane, id) WHERE lane IS NOT NULL;
  CREATE INDEX letters_lane_head ON letters (queue, lane, id) WHERE lane IS NOT NULL AND state < 2;
  CREATE INDEX letters_lane_busy ON letters (queue, lane, id) WHERE lane IS NOT NULL AND state = 1;
  CREATE INDEX letters_expires ON letters (expires_at, id) WHERE expires_at IS NOT NULL;
  CREATE INDEX letters_reason ON letters (reason, id) WHERE reason IS NOT NULL;
  CREATE INDEX letters_tenant ON letters (tenant, id) WHERE tenant IS NOT NULL;
  CREATE INDEX letters_dependent ON letters (id) WHERE dependent = 1;

  CREATE TABLE bodies (
    seq INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    origin_crc INTEGER NOT NULL,
    bytes_crc INTEGER NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
  CREATE TABLE edits (seq INTEGER PRIMARY KEY, bytes_crc INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
  CREATE TABLE history (seq INTEGER, n INTEGER, entry TEXT NOT NULL, PRIMARY KEY (seq, n))
    STRICT, WITHOUT ROWID;
  CREATE TABLE tags (tag TEXT, id TEXT, seq INTEGER NOT NULL, PRIMARY KEY (tag, id)) STRICT, WITHOUT ROWID;
  CREATE TABLE deps (seq INTEGER, id TEXT, PRIMARY KEY (seq, id)) STRICT, WITHOUT ROWID;
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
  `
  ALTER TABLE letters ADD COLUMN source_id TEXT;
  CREATE INDEX letters_source ON letters (source_id, id) WHERE source_id IS NOT NULL;
  `,
  fillSourceIds,
]

const fillLetters = 500

/** Writes the source ids of letters stored before the column existed. */
function fillSourceIds(database: Database): void {
  const next = 'SELECT seq FROM letters WHERE seq > ? ORDER BY seq LIMIT ?'
  let seqs = database.all(next, 0, fillLetters)
  while (seqs.length > 0) {
    for (const [seq] of seqs) {
      const key = sourceKeyAt(database, seq as number)
      if (key !== undefined)
        database.run('UPDATE letters SET source_id = ? WHERE seq = ?', key, seq as number)
    }
    seqs = database.all(next, seqs.at(-1)![0]!, fillLetters)
  }
}

/** A body on a damaged page has no readable source. It must not keep the file from being opened. */
function sourceKeyAt(database: Database, seq: number): string | undefined {
  try {
    const body = database.get('SELECT origin FROM bodies WHERE seq = ?', seq)
    return body && sourceKeyIn(body[0] as string)
  } catch (error) {
    if (!isCorrupt(error)) throw error
    return undefined
  }
}
