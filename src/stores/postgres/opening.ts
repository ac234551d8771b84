import { RedriveError } from '../../errors.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import { prepareSchema, readVersion, type Schema } from '../../backends/postgres/schema.ts'
import type { StoreAddress } from './address.ts'
import { partitionSetup, toPartitioned, readPartitions } from './partitions.ts'
import { migrations, schemaVersion, versionsBefore } from './schema.ts'

const schemaOf = ({ schema }: PostgresConnection): Schema => ({
  key: 'schema',
  migrations,
  versionsBefore,
  lock: `redrive ${schema} migration`,
})

/** The problem with the schema of an open store, undefined if there is none. */
export async function findSchemaProblem(
  connection: PostgresConnection,
): Promise<string | undefined> {
  const read = (sql: string, values?: unknown[]): Promise<unknown[][]> =>
    connection.read(sql, values)
  const found = await readVersion(read, connection, schemaOf(connection))
  return found === schemaVersion
    ? undefined
    : `${connection.place}: the tables of the schema ${connection.schema} were dropped: open the store again to create them`
}

/**
 * Creates or migrates the tables, and rejects a server whose settings would break a guarantee.
 * Returns whether letters are stored by month.
 */
export async function prepare(
  connection: PostgresConnection,
  address: StoreAddress,
  nowMs: number,
): Promise<boolean> {
  const { allowUnsafe, schema, partitions } = address
  const parts = partitions ? { rewrite: toPartitioned, additions: partitionSetup(nowMs) } : {}
  await prepareSchema(connection, { ...schemaOf(connection), ...parts }, allowUnsafe)
  const byMonth = (await readPartitions((sql) => connection.read(sql))) === 'month'
  if (partitions && !byMonth)
    throw new RedriveError(
      'INVALID_CONFIG',
      `${connection.place}: the schema ${schema} was created without partitions: leave the option out, or copy the letters into a schema that is created with it`,
    )
  return byMonth
}
