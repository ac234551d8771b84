import { RedriveError } from '../../errors.ts'
import type { PostgresConnection } from './connection.ts'
import { inspect, refuseProblems, type Read } from './inspect.ts'
import type { Transaction } from './transaction.ts'

/** The tables of a store or mailbox. */
export interface Schema {
  /** The key of the schema version in the table `meta`. */
  key: string
  /** The statements, separated by `;`, that lead from each version to the next. */
  migrations: readonly string[]
  /** Versions before the first migration, which cannot be migrated. Default: 0. */
  versionsBefore?: number
  /** The name of the advisory lock under which the schema is migrated. */
  lock: string
  /** Rewrites a statement where the schema is new. */
  rewrite?: (statement: string) => string
  /** Statements that follow the migrations where the schema is new. */
  additions?: readonly string[]
}

/** The time limit of one statement of a migration. */
const migrationMs = 600_000

/** Rejects a server whose settings would break a guarantee, and creates or migrates the tables. */
export async function prepareSchema(
  connection: PostgresConnection,
  schema: Schema,
  allowUnsafe: boolean,
): Promise<void> {
  const read: Read = (sql, values) => connection.read(sql, values)
  const server = await inspect(read)
  refuseProblems(server, connection.place, allowUnsafe)
  if (server.commitsLazily) connection.commitDurably()
  if ((await readVersion(read, connection, schema)) < versionOf(schema))
    await connection.transaction('cold', (tx) => migrate(tx, connection, schema))
}

const versionOf = ({ migrations, versionsBefore = 0 }: Schema): number =>
  versionsBefore + migrations.length

async function migrate(
  tx: Transaction,
  connection: PostgresConnection,
  schema: Schema,
): Promise<void> {
  const { key, migrations, versionsBefore = 0, lock, rewrite, additions = [] } = schema
  await tx.rows('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [lock])
  const exists = 'SELECT 1 FROM pg_namespace WHERE nspname = $1'
  // Not IF NOT EXISTS: that needs the right to create schemas even where there is nothing to
  // create.
  if ((await tx.rows(exists, [connection.schema])).length === 0)
    await tx.rows(`CREATE SCHEMA "${connection.schema}"`)
  // Read again under the lock, since another process may have migrated the schema.
  const found = await readVersion((sql, values) => tx.rows(sql, values), connection, schema)
  if (found === versionOf(schema)) return
  const isNew = found === 0
  if (isNew) await tx.rows('CREATE TABLE @meta (key text PRIMARY KEY, value text NOT NULL)')
  // Creating an index reads the whole table.
  await tx.rows('SET LOCAL statement_timeout = 0')
  const missing = migrations.slice(isNew ? 0 : found - versionsBefore)
  for (const statement of missing.flatMap((migration) => migration.split(';')))
    if (statement.trim() !== '')
      await tx.rows(isNew && rewrite ? rewrite(statement) : statement, [], migrationMs)
  for (const statement of isNew ? additions : []) await tx.rows(statement)
  const set = `INSERT INTO @meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
  await tx.rows(set, [key, String(versionOf(schema))])
}

const findTables = `SELECT to_regclass($1)::text, (SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))`

/**
 * The version of the existing tables, 0 where there are none. Rejects tables of others, and a
 * version that is newer than ours or too old.
 */
export async function readVersion(
  read: Read,
  { place, schema: name }: PostgresConnection,
  schema: Schema,
): Promise<number> {
  const { key, versionsBefore = 0 } = schema
  const [found] = await read(findTables, [`"${name}".meta`, name])
  const [meta, relations] = found as [string | null, number]
  if (meta === null && relations === 0) return 0
  const rows =
    meta === null ? [] : await read(`SELECT value FROM "${name}".meta WHERE key = $1`, [key])
  const version = Number(rows[0]?.[0] ?? Number.NaN)
  if (!Number.isInteger(version))
    throw new RedriveError(
      'STORE_UNSAFE',
      `${place}: the schema ${name} contains other tables and was left unchanged: choose another schema`,
    )
  if (version > versionOf(schema))
    throw new RedriveError(
      'STORE_UNSAFE',
      `${place}: the schema ${name} has version ${version}, but this Redrive supports up to ${versionOf(schema)}; the schema was left unchanged: upgrade Redrive`,
    )
  if (version <= versionsBefore)
    throw new RedriveError(
      'STORE_UNSAFE',
      `${place}: the schema ${name} has version ${version}, which this Redrive cannot read; the schema was left unchanged: choose another schema`,
    )
  return version
}
