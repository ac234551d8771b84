/** The time of the server, evaluated once per statement, so that an index can be used. */
const now = '(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)'

/**
 * Whether a message is older than the retention in this parameter. A held message stays until its
 * receipt lapses.
 */
const isExpired = (retention: string): string =>
  `enqueued_at <= ${now} - ${retention}::bigint AND NOT (held AND hidden_until > ${now})`

/** The maximum number of messages that one statement expires or puts back. */
export const maxSwept = 500
/** The maximum total size of bodies in one batch or page, unless a single body is larger. */
const maxTakenBytes = 32 * 2 ** 20

/** $1 mailbox, $2 ids, $3 retention. */
export const expireIds = `DELETE FROM @messages WHERE mailbox = $1 AND id = ANY ($2::text[]) AND ${isExpired('$3')} RETURNING id`

/**
 * $1 mailbox, $2 ids, $3 about, $4 all bytes, $5 offset and $6 length of each body, $7 delays.
 * Messages are numbered in the given order; rows are locked in the order of their ids.
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
const qualifiedFields = fields.replaceAll(/\w+/g, (name) => `m.${name}`)

/** $1 mailbox, $2 how long the message of each slot is hidden, $3 retention or 0. */
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
    RETURNING ${qualifiedFields}, slots.slot)
  SELECT ${fields} FROM taken ORDER BY slot`

/**
 * $1 mailbox. Puts delayed messages that are due, and held ones whose receipt lapsed, behind those
 * that wait. Returns their number, and the time until the next one.
 */
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

/**
 * $1 mailbox, $2 seqs, $3 deliveries, and further values: in the order of the messages, so that
 * rows are locked in it.
 */
const receiptsWith = (also: string, values: string): string => `
  (SELECT * FROM unnest($2::bigint[], $3::integer[]${values}) AS receipts (seq, deliveries${also}) ORDER BY seq) AS asked`
const holds = `m.mailbox = $1 AND m.seq = asked.seq AND m.deliveries = asked.deliveries AND m.held AND m.hidden_until > ${now}`

/** Returns the numbers of the settled messages, and the time. */
const returningSettled = (statement: string): string => `
  WITH done AS (${statement} WHERE ${holds} RETURNING m.seq)
  SELECT (SELECT coalesce(array_agg(seq), '{}') FROM done), ${now}`

export const acknowledge = returningSettled(
  `DELETE FROM @messages AS m USING ${receiptsWith('', '')}`,
)

/**
 * $4 delays, $5 whether the delivery failed (otherwise it is not counted), $6 whether the message
 * goes behind those that wait or back to its place.
 */
export const nack = returningSettled(`
  UPDATE @messages AS m
  SET held = false, hidden_until = CASE WHEN delay_ms > 0 THEN ${now} + delay_ms END, failures = m.failures + failed::int,
    released = m.released + (NOT failed)::int, place = CASE WHEN tail THEN nextval('@places') ELSE m.place END
  FROM ${receiptsWith(', delay_ms, failed, tail', ', $4::bigint[], $5::boolean[], $6::boolean[]')}`)

/** $4 the least time from now. */
export const extend = returningSettled(`
  UPDATE @messages AS m SET hidden_until = greatest(m.hidden_until, ${now} + ms) FROM ${receiptsWith(', ms', ', $4::bigint[]')}`)

/**
 * $1 mailbox, $2 retention. Messages expire in the order in which they were sent, so only the
 * oldest are checked, by number.
 */
export const expire = `
  WITH old AS MATERIALIZED (
    SELECT seq FROM @messages
    WHERE mailbox = $1 AND ${isExpired('$2')} AND seq <= (
      SELECT max(seq) FROM (SELECT seq FROM @messages WHERE mailbox = $1 ORDER BY seq LIMIT ${maxSwept}) AS oldest)
    FOR UPDATE SKIP LOCKED)
  DELETE FROM @messages AS m USING old WHERE m.mailbox = $1 AND m.seq = old.seq RETURNING 1`

/**
 * $1 mailbox, $2 after, $3 limit. Each row ends with the number of messages found, including one
 * beyond the limit.
 */
export const browse = `
  WITH page AS MATERIALIZED (
    SELECT seq, octet_length(bytes) AS size FROM @messages
    WHERE mailbox = $1 AND seq > $2 ORDER BY seq LIMIT $3::integer + 1),
  shown AS (
    SELECT seq, sum(size) OVER line - size AS before, count(*) OVER () AS there FROM page WINDOW line AS (ORDER BY seq))
  SELECT ${qualifiedFields}, there FROM shown JOIN @messages AS m ON m.mailbox = $1 AND m.seq = shown.seq
  WHERE before < ${maxTakenBytes} ORDER BY m.seq LIMIT $3::integer`

export const count = 'SELECT count(*) FROM @messages WHERE mailbox = $1'

/** The number of the newest message. */
export const newest = 'SELECT max(seq) FROM @messages WHERE mailbox = $1'

/**
 * $1 mailbox, $2 the newest message to remove, $3 the maximum number, so that the statement stays
 * short.
 */
export const purge = `
  WITH chosen AS MATERIALIZED (
    SELECT seq FROM @messages WHERE mailbox = $1 AND seq <= $2 ORDER BY seq LIMIT $3 FOR UPDATE),
  gone AS (DELETE FROM @messages AS m USING chosen WHERE m.mailbox = $1 AND m.seq = chosen.seq RETURNING 1)
  SELECT count(*) FROM gone`
