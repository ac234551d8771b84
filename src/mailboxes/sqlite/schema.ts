/**
 * What stands in `mail_meta` under "schema". A file with a higher number was written by a newer
 * Redrive.
 */
export const schemaVersion = 3

/**
 * How a file gets from each version to the next, in one transaction. Files in the field went
 * through these very statements: append, and never edit.
 *
 * `messages` has what changes, one short row a message; `bodies` has the rest, so that a delivery
 * does not rewrite it. A message without `hidden_until` waits, and is delivered in the order of
 * `place`. One with it is held by a receiver (`held`) or delayed. The receipt of a delivery is
 * `seq` and `deliveries`: the latter only grows, and `seq` comes from `counter`, which never goes
 * back. `released` are the deliveries that were given back untried: nobody is shown those.
 * `expires_at` is not used: messages expire by `enqueued_at` and the retention of the receiver.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE counter (n INTEGER NOT NULL) STRICT;
  INSERT INTO counter VALUES (0);

  CREATE TABLE mailboxes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    mailbox INTEGER NOT NULL,
    id TEXT NOT NULL,
    place INTEGER NOT NULL,
    hidden_until INTEGER,
    held INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    first_at INTEGER,
    expires_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX messages_id ON messages (mailbox, id);
  CREATE INDEX messages_list ON messages (mailbox, seq);
  CREATE INDEX messages_waiting ON messages (mailbox, place) WHERE hidden_until IS NULL;
  CREATE INDEX messages_hidden ON messages (mailbox, hidden_until, place) WHERE hidden_until IS NOT NULL;
  CREATE INDEX messages_expiring ON messages (mailbox, expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE bodies (seq INTEGER PRIMARY KEY, about TEXT NOT NULL, bytes BLOB NOT NULL) STRICT;
  `,
  // Every index is written for every message: the table itself is in the order of the list,
  // and those that wait stand in one index with those that are hidden. What is given back untried
  // is counted apart.
  `
  ALTER TABLE messages RENAME TO messages_before;
  DROP INDEX messages_id;
  DROP INDEX messages_list;
  DROP INDEX messages_waiting;
  DROP INDEX messages_hidden;
  DROP INDEX messages_expiring;
  CREATE TABLE messages (
    mailbox INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    place INTEGER NOT NULL,
    hidden_until INTEGER,
    held INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    released INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    first_at INTEGER,
    expires_at INTEGER,
    PRIMARY KEY (mailbox, seq)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO messages
    SELECT mailbox, seq, id, place, hidden_until, held, deliveries, 0, failures, enqueued_at, first_at, expires_at FROM messages_before;
  DROP TABLE messages_before;
  CREATE UNIQUE INDEX messages_id ON messages (mailbox, id);
  CREATE INDEX messages_line ON messages (mailbox, hidden_until, place);
  CREATE INDEX messages_expiring ON messages (mailbox, expires_at) WHERE expires_at IS NOT NULL;
  `,
  // Nearly all messages expire in the order in which they were sent. Those that do not are found by
  // going through all.
  `
  DROP INDEX messages_expiring;
  `,
]
