/**
 * The statements that lead from each schema version to the next; `@` stands for the schema.
 * Existing schemas were created by these statements: append, and never edit.
 *
 * A message without `hidden_until` waits, and is delivered in the order of `place`. With it, the
 * message is held by a receiver (`held`) or delayed. The receipt of a delivery is `seq` and
 * `deliveries`; `deliveries` only grows. `released` counts deliveries that were returned untried;
 * they are not reported. `expires_at` is unused: messages expire by `enqueued_at` and the retention
 * of the receiver. Times are in milliseconds by the clock of the server.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE @mailboxes (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
  );
  CREATE SEQUENCE @places;
  CREATE TABLE @messages (
    seq bigint PRIMARY KEY,
    mailbox integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    hidden_until bigint,
    held boolean NOT NULL,
    deliveries integer NOT NULL,
    failures integer NOT NULL,
    enqueued_at bigint NOT NULL,
    first_at bigint,
    expires_at bigint,
    about text COLLATE "C" NOT NULL,
    bytes bytea NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05);
  CREATE UNIQUE INDEX messages_id ON @messages (mailbox, id);
  CREATE INDEX messages_list ON @messages (mailbox, seq);
  CREATE INDEX messages_waiting ON @messages (mailbox, place) WHERE hidden_until IS NULL;
  CREATE INDEX messages_hidden ON @messages (mailbox, hidden_until, place) WHERE hidden_until IS NOT NULL;
  CREATE INDEX messages_expiring ON @messages (mailbox, expires_at) WHERE expires_at IS NOT NULL;
  `,
  // One index where there were two, since every delivery writes to every index. Deliveries that
  // were returned untried are counted.
  `
  DROP INDEX @messages_list;
  ALTER TABLE @messages DROP CONSTRAINT messages_pkey, ADD PRIMARY KEY (mailbox, seq);
  ALTER TABLE @messages ADD COLUMN released integer NOT NULL DEFAULT 0;
  `,
]
