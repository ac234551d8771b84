import type { Address } from '../../backends/postgres/address.ts'
import { inspect, refuseProblems } from '../../backends/postgres/inspect.ts'
import { versionOf as postgresVersionOf } from '../../backends/postgres/version.ts'
import { readerOf, type Link, type Statement } from './link.ts'
import { migrations, schemaVersion } from './schema.ts'

/** Creates or migrates what is needed, refuses a server whose settings would break a promise, and finds the number of the mailbox. */
export async function prepare(link: Link, address: Address, name: string): Promise<number> {
  const server = await inspect(readerOf(link))
  refuseProblems(server, link.place, address.allowUnsafe)
  if (server.lazy) link.commitDurably()
  let found = await versionOf(link)
  while (found < schemaVersion) {
    await migrate(link, found)
    found = await versionOf(link)
  }
  return numberOf(link, name)
}

/**
 * One step, under a lock. The guard fails the whole of it when another process was first, since statements of one transaction are sent
 * in one go.
 */
async function migrate(link: Link, from: number): Promise<void> {
  const lock = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`
  const statements: Statement[] = [
    [lock, [`redrive mail ${link.schema}`]],
    ...(await needsSchema(link)),
  ]
  if (from === 0)
    statements.push(['CREATE TABLE @meta (key text PRIMARY KEY, value text NOT NULL)'])
  for (const statement of migrations[from]!.split(';'))
    if (statement.trim() !== '') statements.push([statement])
  statements.push([
    `INSERT INTO @meta VALUES ('mail', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
    [String(from + 1)],
  ])
  try {
    await link.do(statements)
  } catch (error) {
    if (!(await isDone(link, from))) throw error
  }
}

async function isDone(link: Link, from: number): Promise<boolean> {
  const found = await versionOf(link).catch(() => from)
  return found > from
}

/** Not IF NOT EXISTS: that needs the right to create schemas even where there is nothing to create. */
async function needsSchema(link: Link): Promise<Statement[]> {
  const [made] = await link.do([['SELECT 1 FROM pg_namespace WHERE nspname = $1', [link.schema]]])
  return made!.length === 0 ? [[`CREATE SCHEMA "${link.schema}"`]] : []
}

function versionOf(link: Link): Promise<number> {
  const { place, schema } = link
  return postgresVersionOf(readerOf(link), { place, schema, key: 'mail', newest: schemaVersion })
}

async function numberOf(link: Link, name: string): Promise<number> {
  const find: Statement = ['SELECT id FROM @mailboxes WHERE name = $1', [name]]
  const [known] = await link.do([find])
  if (known![0]) return known![0][0] as number
  const add = 'INSERT INTO @mailboxes (name) VALUES ($1) ON CONFLICT DO NOTHING'
  const [, made] = await link.do([[add, [name]], find], { repeatable: true })
  return made![0]![0] as number
}
