import { RedriveError } from '../../errors.ts'
import type { Address } from './address.ts'
import type { Link, Tx } from './link.ts'
import { lock } from './locks.ts'
import { firstParts, inParts, partitionsOf } from './partitions.ts'
import { migrations, schemaVersion } from './schema.ts'

/** The server as we find it. */
export interface Server {
  checks: Record<string, string>
  /** What would break a promise. */
  problems: string[]
}

const oldestVersion = 120_000

const settings = `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('fsync'),
  current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only'),
  pg_is_in_recovery(), current_setting('server_encoding')`

/** What is wrong with the schema of a store that was opened, undefined when it is as it was. */
export async function troubleWith(link: Link): Promise<string | undefined> {
  const found = await versionOf((sql, values) => link.read(sql, values), link, link.schema)
  return found === schemaVersion
    ? undefined
    : `${link.place}: the tables of the schema ${link.schema} are gone: open the store again to make them`
}

/** Looks at what durability rests on. */
export async function inspect(link: Link): Promise<Server> {
  const [row] = await link.read(settings)
  const [number, version, fsync, fullPages, commit, readOnly, standby, encoding] = row as [
    number,
    string,
    string,
    string,
    string,
    string,
    boolean,
    string,
  ]
  const problems: string[] = []
  if (number < oldestVersion) problems.push(`Postgres ${version} is too old: 12 or newer is needed`)
  if (fsync !== 'on')
    problems.push('fsync is off: a crash of the server can lose or damage everything')
  if (fullPages !== 'on')
    problems.push('full_page_writes is off: a loss of power can damage what is kept')
  if (standby) problems.push('the server is a standby: connect to the primary')
  else if (readOnly === 'on') problems.push('the server is read-only: connect to the primary')
  if (encoding !== 'UTF8')
    problems.push(`the database has the encoding ${encoding}: UTF8 is needed`)
  const checks = {
    server: version,
    fsync,
    full_page_writes: fullPages,
    synchronous_commit: commit === 'off' ? 'on, for our transactions' : commit,
    writable: standby || readOnly === 'on' ? 'no' : 'yes',
  }
  return { checks, problems }
}

/**
 * Creates or migrates what is needed, and refuses a server whose settings would break a promise. Answers whether letters are
 * kept by month.
 */
export async function prepare(link: Link, address: Address, nowMs: number): Promise<boolean> {
  const { allowUnsafe, schema, partitions } = address
  const { checks, problems } = await inspect(link)
  if (problems.length > 0 && !allowUnsafe)
    throw new RedriveError(
      'STORE_UNSAFE',
      `${link.place}: ${problems.join('; ')} (allowUnsafe=true opens it all the same)`,
    )
  if (checks['synchronous_commit']!.startsWith('on,')) link.commitDurably()
  const found = await versionOf((sql, values) => link.read(sql, values), link, schema)
  if (found !== schemaVersion)
    await link.transaction('cold', (tx) => migrate(tx, link, address, nowMs))
  const byMonth = (await partitionsOf((sql) => link.read(sql))) === 'month'
  if (partitions && !byMonth)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${link.place}: the schema ${schema} was made without partitions: leave the option out, or copy the letters into a schema that is made with it`,
    )
  return byMonth
}

async function migrate(tx: Tx, link: Link, address: Address, nowMs: number): Promise<void> {
  const { schema, partitions } = address
  await lock(tx, link, ['migration'])
  const made = await tx.rows('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
  // Not IF NOT EXISTS: that needs the right to create schemas even where there is nothing to create.
  if (made.length === 0) await tx.rows(`CREATE SCHEMA "${schema}"`)
  // Another process may have been first: only now, under the lock, is it certain what is there.
  const found = await versionOf((sql, values) => tx.rows(sql, values), link, schema)
  if (found === schemaVersion) return
  if (found === 0) await tx.rows('CREATE TABLE @meta (key text PRIMARY KEY, value text NOT NULL)')
  const byMonth = found === 0 && partitions === 'month'
  for (const migration of migrations.slice(found))
    for (const statement of migration.split(';'))
      if (statement.trim() !== '') await tx.rows(byMonth ? inParts(statement) : statement)
  for (const statement of byMonth ? firstParts(nowMs) : []) await tx.rows(statement)
  const set = `INSERT INTO @meta VALUES ('schema', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
  await tx.rows(set, [String(schemaVersion)])
}

/** The version of the schema that is there, 0 when there is nothing. What is not ours, or newer than ours, is refused. */
async function versionOf(
  read: (sql: string, values?: unknown[]) => Promise<unknown[][]>,
  link: Link,
  schema: string,
): Promise<number> {
  const [there] = await read(
    `SELECT to_regclass($1)::text, (SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))`,
    [`"${schema}".meta`, schema],
  )
  const [meta, relations] = there as [string | null, number]
  if (meta === null && relations === 0) return 0
  const rows = meta === null ? [] : await read(`SELECT value FROM @meta WHERE key = 'schema'`)
  const version = Number(rows[0]?.[0] ?? Number.NaN)
  if (!Number.isInteger(version))
    throw new RedriveError(
      'STORE_UNSAFE',
      `${link.place}: the schema ${schema} holds something else; it was left as it is: choose another`,
    )
  if (version > schemaVersion)
    throw new RedriveError(
      'STORE_UNSAFE',
      `${link.place}: the schema ${schema} has version ${version}, this version of Redrive knows up to ${schemaVersion}; it was left as it is: upgrade`,
    )
  return version
}
