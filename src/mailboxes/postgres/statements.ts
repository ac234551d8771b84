/** The server's time, once for a statement. An index can be used with it. */
const now = '(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)'

/** Older than the retention in the parameter of this number. A message that is held by a receiver stays until its receipt lapses. */
const overdue = (retention: string): string =>
  `enqueued_at <= ${now} - ${retention}::bigint AND NOT (held AND hidden_until > ${now})`

/** Messages that one statement removes because they have expired, or puts back because they lapsed. */
export const maxSwept = 500
/** Bodies that go to the receivers in one batch, or are shown on one page, unless a single one is larger. */
const maxTakenBytes = 32 * 2 ** 20

/** $1 mailbox, $2 ids, $3 retention. */
export const expireIds = `DELETE FROM @messages WHERE mailbox = $1 AND id = ANY ($2::text[]) AND ${overdue('$3')} RETURNING id`

/**
 * $1 mailbox, $2 ids, $3 about, $4 all bytes, $5 where those of each begin, $6 how many they are, $7 delays.
 * In the order given; rows are locked in the order of their ids.
 */
export const send = `
  WITH given AS MATERIALIZED (
    SELECT nextval('@places') AS seq, parcel.* FROM (
      SELECT * FROM unnest($2::text[], $3::text[], $5::integer[], $6::integer[], $7::bigint[])
        WITH ORDINALITY AS parcels (id, about, start, size, delay_ms, n) ORDER BY n) AS parcel)
  INSERT INTO @messages
    (seq, mailbox, id, place, hidden_until, held, deliveries, failures, enqueued_at, about, bytes)
  SELECT seq, $1, id, seq, CASE WHEN delay_ms > 0 THEN ${now} + delay_ms END, false, 0, 0, ${now},
    about, substr($4::bytea, start, size)
  FROM given ORDER BY id, seq
  ON CONFLICT (mailbox, id) DO NOTHING RETURNING 1`

const fields =
  'seq, deliveries, released, id, about, bytes, failures, enqueued_at, first_at, hidden_until' as const
const ours = fields.replaceAll(/\w+/g, (name) => `m.${name}`)

/** $1 mailbox, $2 for each slot how long its message is hidden, $3 retention or 0. */
export const take = `
  WITH waiting AS MATERIALIZED (
    SELECT seq, place, octet_length(bytes) AS size FROM @messages
    WHERE mailbox = $1 AND hidden_until IS NULL AND ($3::bigint = 0 OR enqueued_at > ${now} - $3)
    ORDER BY place LIMIT cardinality($2::bigint[]) FOR UPDATE SKIP LOCKED),
  slots AS MATERIALIZED (
    SELECT seq, row_number() OVER line AS slot, sum(size) OVER line - size AS before
    FROM waiting WINDOW line AS (ORDER BY place)),
  taken AS (
    UPDATE @messages AS m
    SET held = true, hidden_until = ${now} + ($2::bigint[])[slot], deliveries = m.deliveries + 1, first_at = coalesce(m.first_at, ${now})
    FROM slots WHERE m.mailbox = $1 AND m.seq = slots.seq AND before < ${maxTakenBytes}
    RETURNING ${ours}, slots.slot)
  SELECT ${fields} FROM taken ORDER BY slot`

/** $1 mailbox. What was delayed, or held by somebody who did not come back, goes behind what waits. How many, and when the next is due. */
export const putBack = `
  WITH lapsed AS MATERIALIZED (
    SELECT seq, nextval('@places') AS place FROM (
      SELECT seq FROM @messages WHERE mailbox = $1 AND hidden_until <= ${now}
      ORDER BY hidden_until, place LIMIT ${maxSwept} FOR UPDATE SKIP LOCKED) AS first),
  moved AS (
    UPDATE @messages AS m SET held = false, hidden_until = NULL, place = lapsed.place
    FROM lapsed WHERE m.mailbox = $1 AND m.seq = lapsed.seq RETURNING 1)
  SELECT (SELECT count(*)::int FROM moved),
    (SELECT hidden_until FROM @messages WHERE mailbox = $1 AND hidden_until > ${now} ORDER BY hidden_until LIMIT 1) - ${now}`

/** $1 mailbox, $2 seqs, $3 deliveries, and what else was asked: in the order of the messages, so that they are locked in it. */
const asked = (also: string, values: string): string => `
  (SELECT * FROM unnest($2::bigint[], $3::integer[]${values}) AS receipts (seq, deliveries${also}) ORDER BY seq) AS asked`
const holds = `m.mailbox = $1 AND m.seq = asked.seq AND m.deliveries = asked.deliveries AND m.held AND m.hidden_until > ${now}`

/** The number of each message that it was done to, and the time. */
const telling = (deed: string): string => `
  WITH done AS (${deed} WHERE ${holds} RETURNING m.seq)
  SELECT (SELECT coalesce(array_agg(seq), '{}') FROM done), ${now}`

export const acknowledge = telling(`DELETE FROM @messages AS m USING ${asked('', '')}`)

/** $4 delays, $5 whether it failed or was no delivery, $6 whether it goes behind what waits or back to where it was. */
export const nack = telling(`
  UPDATE @messages AS m
  SET held = false, hidden_until = CASE WHEN delay_ms > 0 THEN ${now} + delay_ms END, failures = m.failures + failed::int,
    released = m.released + (NOT failed)::int, place = CASE WHEN tail THEN nextval('@places') ELSE m.place END
  FROM ${asked(', delay_ms, failed, tail', ', $4::bigint[], $5::boolean[], $6::boolean[]')}`)

/** $4 for how long from now at least. */
export const extend = telling(`
  UPDATE @messages AS m SET hidden_until = greatest(m.hidden_until, ${now} + ms) FROM ${asked(', ms', ', $4::bigint[]')}`)

/** $1 mailbox, $2 retention. Messages expire in the order in which they were sent, so that the oldest are looked at, by their numbers. */
export const expire = `
  WITH old AS MATERIALIZED (
    SELECT seq FROM @messages
    WHERE mailbox = $1 AND ${overdue('$2')} AND seq <= (
      SELECT max(seq) FROM (SELECT seq FROM @messages WHERE mailbox = $1 ORDER BY seq LIMIT ${maxSwept}) AS oldest)
    FOR UPDATE SKIP LOCKED)
  DELETE FROM @messages AS m USING old WHERE m.mailbox = $1 AND m.seq = old.seq RETURNING 1`

/** $1 mailbox, $2 after, $3 limit. Behind the fields of each message, how many there are with one beyond the limit. */
export const browse = `
  WITH page AS MATERIALIZED (
    SELECT seq, octet_length(bytes) AS size FROM @messages
    WHERE mailbox = $1 AND seq > $2 ORDER BY seq LIMIT $3::integer + 1),
  shown AS (
    SELECT seq, sum(size) OVER line - size AS before, count(*) OVER () AS there FROM page WINDOW line AS (ORDER BY seq))
  SELECT ${ours}, there FROM shown JOIN @messages AS m ON m.mailbox = $1 AND m.seq = shown.seq
  WHERE before < ${maxTakenBytes} ORDER BY m.seq LIMIT $3::integer`

export const count = 'SELECT count(*) FROM @messages WHERE mailbox = $1'

/** The newest message there is. */
export const newest = 'SELECT max(seq) FROM @messages WHERE mailbox = $1'

/** $1 mailbox, $2 the newest that goes, $3 how many at the most, so that none of it takes long. */
export const purge = `
  WITH chosen AS MATERIALIZED (
    SELECT seq FROM @messages WHERE mailbox = $1 AND seq <= $2 ORDER BY seq LIMIT $3 FOR UPDATE),
  gone AS (DELETE FROM @messages AS m USING chosen WHERE m.mailbox = $1 AND m.seq = chosen.seq RETURNING 1)
  SELECT count(*) FROM gone`
