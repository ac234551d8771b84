import { RedriveError } from '../../errors.ts'

/** The rows that a statement gives. */
export type Read = (sql: string, values?: unknown[]) => Promise<unknown[][]>

/** The server as we find it. */
export interface Server {
  checks: Record<string, string>
  /** What would break a promise. */
  problems: string[]
  /** Commits do not wait for the disk unless they are told to. */
  lazy: boolean
}

const oldestVersion = 120_000

const settings = `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('fsync'),
  current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only'),
  pg_is_in_recovery(), current_setting('server_encoding')`

/** Looks at what durability rests on. */
export async function inspect(read: Read): Promise<Server> {
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
      'fsync is off, so that a crash of the server can lose or damage everything: set "fsync = on"',
    )
  if (fullPages !== 'on')
    problems.push(
      'full_page_writes is off, so that a loss of power can damage what is kept: set "full_page_writes = on"',
    )
  if (standby) problems.push('the server is a standby: connect to the primary')
  else if (readOnly === 'on') problems.push('the server is read-only: connect to the primary')
  if (encoding !== 'UTF8')
    problems.push(`the database has the encoding ${encoding}: UTF8 is needed`)
  const lazy = commit === 'off'
  const checks = {
    server: version,
    fsync,
    full_page_writes: fullPages,
    synchronous_commit: lazy ? 'on, for our transactions' : commit,
    writable: standby || readOnly === 'on' ? 'no' : 'yes',
  }
  return { checks, problems, lazy }
}

/** Refuses a server whose settings would break a promise. */
export function refuseProblems({ problems }: Server, place: string, allowUnsafe: boolean): void {
  if (problems.length === 0 || allowUnsafe) return
  throw new RedriveError(
    'STORE_UNSAFE',
    `${place} is not safe: ${problems.join('; ')}. To use it all the same and accept that, put ?allowUnsafe=true behind the URL`,
  )
}
