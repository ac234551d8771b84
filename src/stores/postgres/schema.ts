/**
 * The statements that lead from each schema version to the next, in one transaction; `@` stands for
 * the schema. Existing schemas were created by these statements: append, and never edit.
 *
 * `letters` has the columns that change, in one short row per letter. `bodies` has what never
 * changes after capture, so that a settle does not rewrite the payload. `wait` and `due_at` are
 * derived: why and until when a letter waits. `ranges` has every queue and priority that ever had a
 * letter, so that a claim knows which ranges to read. `counters` has the number of letters of each
 * kind and the lifetime totals, in many slots that add up, so that writers do not wait for each
 * other.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE @queues (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
  );
  CREATE TABLE @ranges (queue integer, priority smallint, PRIMARY KEY (queue, priority));

  CREATE TABLE @letters (
    id text COLLATE "C" PRIMARY KEY,
    state smallint NOT NULL,
    priority smallint NOT NULL,
    category smallint NOT NULL,
    policy smallint NOT NULL,
    reason text COLLATE "C",
    fingerprint text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    retries bigint NOT NULL,
    backoff_ms double precision NOT NULL,
    retry_at text COLLATE "C",
    settled_at text COLLATE "C",
    expires_at text COLLATE "C",
    dead_lettered_at text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    worker text COLLATE "C",
    leased_until text COLLATE "C",
    lane text COLLATE "C",
    tenant text COLLATE "C",
    dependent smallint NOT NULL,
    tagged smallint NOT NULL,
    entries bigint NOT NULL,
    omitted bigint NOT NULL,
    rest text COLLATE "C" NOT NULL,
    crc bigint NOT NULL,
    queue integer NOT NULL,
    dedupe bytea,
    wait smallint,
    due_at bigint,
    size bigint NOT NULL
  ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
  CREATE INDEX letters_list ON @letters (queue, state, id);
  CREATE INDEX letters_due ON @letters (queue, wait, priority, due_at, id) WHERE due_at IS NOT NULL;
  CREATE INDEX letters_settled ON @letters (queue, state, settled_at, id) WHERE settled_at IS NOT NULL;
  CREATE INDEX letters_group ON @letters (fingerprint, id);
  CREATE INDEX letters_dedupe ON @letters (queue, dedupe, id)
    WHERE dedupe IS NOT NULL AND state NOT IN (2, 5);
  CREATE INDEX letters_lane ON @letters (lane, id) WHERE lane IS NOT NULL;
  CREATE INDEX letters_lane_head ON @letters (queue, lane, id) WHERE lane IS NOT NULL AND state < 2;
  CREATE INDEX letters_lane_out ON @letters (queue, lane, id) WHERE lane IS NOT NULL AND wait < 2;
  CREATE INDEX letters_expires ON @letters (expires_at, id) WHERE expires_at IS NOT NULL;
  CREATE INDEX letters_reason ON @letters (reason, id) WHERE reason IS NOT NULL;
  CREATE INDEX letters_tenant ON @letters (tenant, id) WHERE tenant IS NOT NULL;
  CREATE INDEX letters_dependent ON @letters (id) WHERE dependent = 1;

  CREATE TABLE @bodies (
    id text COLLATE "C" PRIMARY KEY,
    origin text COLLATE "C" NOT NULL,
    origin_crc bigint NOT NULL,
    bytes_crc bigint NOT NULL,
    bytes bytea NOT NULL
  ) WITH (toast_tuple_target = 8160);
  CREATE TABLE @edits (id text COLLATE "C" PRIMARY KEY, bytes_crc bigint NOT NULL, bytes bytea NOT NULL);
  CREATE TABLE @history (id text COLLATE "C", n bigint, entry text COLLATE "C" NOT NULL, PRIMARY KEY (id, n));
  CREATE TABLE @tags (tag text COLLATE "C", id text COLLATE "C", PRIMARY KEY (tag, id));
  CREATE TABLE @deps (letter text COLLATE "C", id text COLLATE "C", PRIMARY KEY (letter, id));
  CREATE INDEX deps_id ON @deps (id, letter);

  CREATE TABLE @counters (
    kind smallint,
    queue integer,
    name text COLLATE "C",
    code integer,
    slot bigint,
    n bigint NOT NULL,
    retries bigint NOT NULL,
    max_retries bigint NOT NULL,
    backoff_ms double precision NOT NULL,
    PRIMARY KEY (kind, queue, name, code, slot)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1);

  CREATE TABLE @records (
    kind text COLLATE "C",
    id text COLLATE "C",
    version bigint NOT NULL,
    value text COLLATE "C" NOT NULL,
    updated_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, id)
  );
  `,
  `
  ALTER TABLE @letters ADD COLUMN source_id text COLLATE "C";
  CREATE INDEX letters_source ON @letters (source_id, id) WHERE source_id IS NOT NULL;
  `,
]

/**
 * The version in `meta` under "schema". A schema with a higher number was written by a newer
 * Redrive.
 */
export const schemaVersion = migrations.length
