import { RedriveError } from '../../errors.ts'
import { inspect, refuseProblems, type Read } from '../../backends/postgres/inspect.ts'
import { versionOf as postgresVersionOf } from '../../backends/postgres/version.ts'
import type { StoreAddress } from './address.ts'
import type { Link, Tx } from './link.ts'
import { lock } from './locks.ts'
import { firstParts, inParts, partitionsOf } from './partitions.ts'
import { migrations, schemaVersion } from './schema.ts'
import { fillSourceIds } from './source-ids.ts'

/** How long one statement of a migration may take. */
const migrationMs = 600_000

/** What is wrong with the schema of a store that was opened, undefined when it is as it was. */
export async function troubleWith(link: Link): Promise<string | undefined> {
  const found = await versionOf((sql, values) => link.read(sql, values), link)
  return found === schemaVersion
    ? undefined
    : `${link.place}: the tables of the schema ${link.schema} are gone: open the store again to make them`
}

/**
 * Creates or migrates what is needed, and refuses a server whose settings would break a promise. Answers whether letters are
 * kept by month.
 */
export async function prepare(link: Link, address: StoreAddress, nowMs: number): Promise<boolean> {
  const { allowUnsafe, schema, partitions } = address
  const server = await inspect((sql) => link.read(sql))
  refuseProblems(server, link.place, allowUnsafe)
  if (server.lazy) link.commitDurably()
  const found = await versionOf((sql, values) => link.read(sql, values), link)
  if (found !== schemaVersion)
    await link.transaction('cold', (tx) => migrate(tx, link, address, nowMs))
  await fillSourceIds(link)
  const byMonth = (await partitionsOf((sql) => link.read(sql))) === 'month'
  if (partitions && !byMonth)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${link.place}: the schema ${schema} was made without partitions: leave the option out, or copy the letters into a schema that is made with it`,
    )
  return byMonth
}

async function migrate(tx: Tx, link: Link, address: StoreAddress, nowMs: number): Promise<void> {
  const { schema, partitions } = address
  await lock(tx, link, ['migration'])
  const made = await tx.rows('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
  // Not IF NOT EXISTS: that needs the right to create schemas even where there is nothing to create.
  if (made.length === 0) await tx.rows(`CREATE SCHEMA "${schema}"`)
  // Another process may have been first: only now, under the lock, is it certain what is there.
  const found = await versionOf((sql, values) => tx.rows(sql, values), link)
  if (found === schemaVersion) return
  if (found === 0) await tx.rows('CREATE TABLE @meta (key text PRIMARY KEY, value text NOT NULL)')
  const byMonth = found === 0 && partitions === 'month'
  // The index of a new column reads the whole table.
  await tx.rows('SET LOCAL statement_timeout = 0')
  for (const migration of migrations.slice(found))
    for (const statement of migration.split(';'))
      if (statement.trim() !== '')
        await tx.rows(byMonth ? inParts(statement) : statement, [], migrationMs)
  for (const statement of byMonth ? firstParts(nowMs) : []) await tx.rows(statement)
  const set = `INSERT INTO @meta VALUES ('schema', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
  await tx.rows(set, [String(schemaVersion)])
}

/** The version of the schema that is there, 0 when there is nothing. What is not ours, or newer than ours, is refused. */
function versionOf(read: Read, { place, schema }: Link): Promise<number> {
  return postgresVersionOf(read, { place, schema, key: 'schema', newest: schemaVersion })
}
