import { RedriveError } from '../../errors.ts'
import type { Read } from './inspect.ts'

export interface Versioned {
  place: string
  schema: string
  /** What the version stands under in `meta`. */
  key: string
  /** The version that this Redrive makes. */
  newest: number
}

const look = `SELECT to_regclass($1)::text, (SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))`

/** The version of the schema that is there, 0 when there is nothing. What is not ours, or newer than ours, is refused. */
export async function versionOf(read: Read, expected: Versioned): Promise<number> {
  const { place, schema, key, newest } = expected
  const [there] = await read(look, [`"${schema}".meta`, schema])
  const [meta, relations] = there as [string | null, number]
  if (meta === null && relations === 0) return 0
  const rows =
    meta === null ? [] : await read(`SELECT value FROM "${schema}".meta WHERE key = $1`, [key])
  const version = Number(rows[0]?.[0] ?? Number.NaN)
  if (!Number.isInteger(version))
    throw new RedriveError(
      'STORE_UNSAFE',
      `${place}: the schema ${schema} holds something else; it was left as it is: choose another`,
    )
  if (version > newest)
    throw new RedriveError(
      'STORE_UNSAFE',
      `${place}: the schema ${schema} has version ${version}, this version of Redrive knows up to ${newest}; it was left as it is: upgrade`,
    )
  return version
}
