/**
 * How a schema gets from each version to the next, in one transaction; `@` stands for the schema. Schemas in the field went
 * through these very statements: append, and never edit.
 *
 * A message without `hidden_until` waits, and is delivered in the order of `place`. One with it is held by a receiver (`held`) or delayed.
 * The receipt of a delivery is `seq` and `deliveries`: the latter only grows. `released` are the deliveries that were given back untried:
 * nobody is shown those. `expires_at` is not used: messages expire by `enqueued_at` and the retention of whoever receives. Times are in milliseconds by the server's clock.
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
  // Every delivery writes to every index: one finds the messages of a mailbox by their numbers where there were two. What is given back
  // untried is counted apart.
  `
  DROP INDEX @messages_list;
  ALTER TABLE @messages DROP CONSTRAINT messages_pkey, ADD PRIMARY KEY (mailbox, seq);
  ALTER TABLE @messages ADD COLUMN released integer NOT NULL DEFAULT 0;
  `,
]
