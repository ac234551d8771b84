/**
 * The statements that create the tables; `@` stands for the schema. Existing schemas were created
 * by these statements: append, and never edit.
 *
 * `letters` has the columns that change, in one short row per letter; columns that are never null
 * come first, the longest first, so that their positions are fixed. `bodies` has what never changes
 * after capture, so that a settle does not rewrite the payload, and the bytes of an edit. Its
 * primary key decides whether an id is new: see `insert.ts`. `ranges` has every queue and priority
 * that ever had a letter, so that a claim knows which ranges to read. `counters` has the number of
 * letters of each kind and the lifetime totals, in many slots that add up, so that writers do not
 * wait for each other. Each index is named with the calls that need it. An update of a letter
 * writes to all indexes of `letters`; `tags` and `groups` serve find by tag and by group.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE @queues (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
  );
  CREATE TABLE @ranges (queue integer, priority smallint, PRIMARY KEY (queue, priority));

  CREATE TABLE @letters (
    id uuid PRIMARY KEY,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    retries bigint NOT NULL,
    max_retries double precision NOT NULL,
    backoff_ms double precision NOT NULL,
    captured_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    size bigint NOT NULL,
    queue integer NOT NULL,
    occurrences integer NOT NULL,
    replays integer NOT NULL,
    omitted integer NOT NULL,
    unmet integer NOT NULL,
    state smallint NOT NULL,
    priority smallint NOT NULL,
    category smallint NOT NULL,
    severity smallint NOT NULL,
    recoverability smallint NOT NULL,
    policy smallint NOT NULL,
    depended boolean NOT NULL,
    due_at bigint,
    retry_at bigint,
    settled_at bigint,
    expires_at bigint,
    leased_until bigint,
    budget_since bigint,
    deferred_since bigint,
    wait smallint,
    reason smallint,
    archived_from smallint,
    fingerprint text COLLATE "C" NOT NULL,
    history text COLLATE "C" NOT NULL,
    worker text COLLATE "C",
    lane text COLLATE "C",
    tenant text COLLATE "C",
    source_id text COLLATE "C",
    dedupe bytea,
    policy_json text COLLATE "C",
    tags text[] COLLATE "C",
    headers text COLLATE "C",
    metadata text COLLATE "C",
    failure text COLLATE "C",
    review text COLLATE "C",
    edit text COLLATE "C"
  ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
  -- find by queue and state, newest or oldest first
  CREATE INDEX letters_list ON @letters (queue, state, id) WITH (deduplicate_items = off);
  -- claim, find in the order due
  CREATE INDEX letters_due ON @letters (queue, wait, priority, due_at, id)
    WITH (deduplicate_items = off) WHERE due_at IS NOT NULL;
  -- find in the order settled, eviction, removal by settledBefore
  CREATE INDEX letters_settled ON @letters (queue, state, settled_at, id)
    WITH (deduplicate_items = off) WHERE settled_at IS NOT NULL;
  -- add: the open letter with a dedupe key
  CREATE INDEX letters_dedupe ON @letters (queue, dedupe, id)
    WHERE dedupe IS NOT NULL AND state NOT IN (2, 5);
  -- find by lane
  CREATE INDEX letters_lane ON @letters (lane, id) WHERE lane IS NOT NULL;
  -- the first active letter of a lane, and the letter of a lane that is claimable or leased
  CREATE INDEX letters_lane_head ON @letters (queue, lane, id) WHERE lane IS NOT NULL AND state < 2;
  CREATE INDEX letters_lane_out ON @letters (queue, lane, id) WHERE lane IS NOT NULL AND wait < 2;
  -- find by expiresBefore
  CREATE INDEX letters_expires ON @letters (expires_at, id) WHERE expires_at IS NOT NULL;
  -- find by tenant
  CREATE INDEX letters_tenant ON @letters (tenant, id) WHERE tenant IS NOT NULL;
  -- find by sourceId
  CREATE INDEX letters_source ON @letters (source_id, id) WHERE source_id IS NOT NULL;
  -- find by dependent
  CREATE INDEX letters_unmet ON @letters (id) WHERE unmet > 0;

  CREATE TABLE @bodies (
    id uuid PRIMARY KEY,
    origin_crc bigint NOT NULL,
    bytes_crc bigint NOT NULL,
    edit_crc bigint,
    origin text COLLATE "C" NOT NULL,
    payload text COLLATE "C",
    bytes bytea,
    edit bytea
  ) WITH (toast_tuple_target = 8160);
  CREATE TABLE @tags (tag text COLLATE "C", id uuid, PRIMARY KEY (tag, id));
  CREATE TABLE @groups (fingerprint text COLLATE "C", id uuid, PRIMARY KEY (fingerprint, id));
  CREATE TABLE @deps (letter uuid, id text COLLATE "C", PRIMARY KEY (letter, id));
  -- the letters that depend on a resolved one
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
]

/** The versions before the first migration. Redrive never released them, and cannot read them. */
export const versionsBefore = 2

/**
 * The version in `meta` under "schema". A schema with a higher number was written by a newer
 * Redrive.
 */
export const schemaVersion = versionsBefore + migrations.length
