import { RedriveError } from '../../errors.ts'

/** Returns the rows of a statement. */
export type Read = (sql: string, values?: unknown[]) => Promise<unknown[][]>

export interface Inspection {
  checks: Record<string, string>
  /** Settings that would break a guarantee. */
  problems: string[]
  /** Whether commits do not wait for the disk by default (`synchronous_commit = off`). */
  commitsLazily: boolean
}

const oldestVersion = 120_000

const settings = `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('fsync'),
  current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only'),
  pg_is_in_recovery(), current_setting('server_encoding')`

/** Reads the settings of the server on which durability depends. */
export async function inspect(read: Read): Promise<Inspection> {
  const [row] = await read(settings)
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
    problems.push(
      'fsync is off, so a crash of the server can lose or damage data: set "fsync = on"',
    )
  if (fullPages !== 'on')
    problems.push(
      'full_page_writes is off, so a power loss can damage data: set "full_page_writes = on"',
    )
  if (standby) problems.push('the server is a standby: connect to the primary')
  else if (readOnly === 'on') problems.push('the server is read-only: connect to the primary')
  if (encoding !== 'UTF8')
    problems.push(`the database has the encoding ${encoding}: UTF8 is needed`)
  const commitsLazily = commit === 'off'
  const checks = {
    server: version,
    fsync,
    full_page_writes: fullPages,
    synchronous_commit: commitsLazily ? 'on, for our transactions' : commit,
    writable: standby || readOnly === 'on' ? 'no' : 'yes',
  }
  return { checks, problems, commitsLazily }
}

/** Rejects a server whose settings would break a guarantee. */
export function refuseProblems(
  { problems }: Inspection,
  place: string,
  allowUnsafe: boolean,
): void {
  if (problems.length === 0 || allowUnsafe) return
  throw new RedriveError(
    'STORE_UNSAFE',
    `${place} is not safe: ${problems.join('; ')}. To use it anyway, set allowUnsafe (in a URL: ?allowUnsafe=true)`,
  )
}
