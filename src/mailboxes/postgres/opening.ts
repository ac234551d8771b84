import type { Address } from '../../backends/postgres/address.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import { prepareSchema } from '../../backends/postgres/schema.ts'
import { migrations } from './schema.ts'

/**
 * Creates or migrates the tables, rejects a server whose settings would break a guarantee, and
 * returns the number of the mailbox.
 */
export async function prepare(
  connection: PostgresConnection,
  { allowUnsafe, schema }: Address,
  name: string,
): Promise<number> {
  await prepareSchema(
    connection,
    { key: 'mail', migrations, lock: `redrive mail ${schema}` },
    allowUnsafe,
  )
  const find = (): Promise<unknown[][]> =>
    connection.read('SELECT id FROM @mailboxes WHERE name = $1', [name])
  const [known] = await find()
  if (known) return known[0] as number
  const add = 'INSERT INTO @mailboxes (name) VALUES ($1) ON CONFLICT DO NOTHING'
  await connection.execute(add, [name], { repeatable: true })
  return (await find())[0]![0] as number
}
