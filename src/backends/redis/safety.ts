import { RedriveError } from '../../errors.ts'
import { isForbidden } from './errors.ts'
import { toText, type Reply, type RedisConnection } from './connection.ts'

/** What was found out about a server, and what is wrong with it. */
export interface Findings {
  checks: Record<string, string>
  /** What would break a promise: nothing opens with it, unless volatile ones are allowed. */
  dangers: string[]
  /** The append-only file is on. */
  durable: boolean
}

const settings = ['appendonly', 'appendfsync', 'maxmemory-policy', 'aof-load-truncated'] as const

/** Looks at the server: its version, its role, and whether what it acknowledges is still there after a crash. */
export async function inspect(connection: RedisConnection): Promise<Findings> {
  const { tag, tenant } = connection
  // In a cluster, this leads to the node that has the keys: it is the one to look at.
  await connection.send('EXISTS', `${tag}:meta`)
  const info = infoIn(toText(await connection.send('INFO')))
  const config = await configOf(connection)
  const version = info.get('redis_version') ?? 'unknown'
  const role = info.get('role') ?? 'unknown'
  const appendonly = config?.get('appendonly') ?? (info.get('aof_enabled') === '1' ? 'yes' : 'no')
  const policy = config?.get('maxmemory-policy') ?? info.get('maxmemory_policy') ?? 'unknown'
  const appendfsync = config?.get('appendfsync') ?? 'unknown: CONFIG is not allowed here'
  const checks = {
    server: connection.place,
    version,
    role,
    mode: info.get('redis_mode') ?? 'unknown',
    appendonly,
    appendfsync: appendonly === 'yes' ? told(appendfsync) : 'no file to sync',
    'maxmemory-policy': policy,
    'aof-load-truncated': config?.get('aof-load-truncated') ?? 'unknown',
    replicas: info.get('connected_slaves') ?? '0',
  }
  const dangers: string[] = []
  if (isOlder(version)) dangers.push(`it is Redis ${version}, and 6.2 is the oldest that will do`)
  if (role !== 'master') dangers.push(`it is a ${role}, which cannot write: name the master`)
  if (appendonly !== 'yes')
    dangers.push(`appendonly is off, so a crash loses ${tenant.keeps}: set "appendonly yes"`)
  if (appendonly === 'yes' && appendfsync === 'no')
    dangers.push(
      'appendfsync is "no": set it to "always", or to "everysec" if the last second may be lost',
    )
  if (policy !== 'noeviction')
    dangers.push(
      `maxmemory-policy is ${policy}, which drops ${tenant.keeps} when memory runs short: set "noeviction"`,
    )
  return { checks, dangers, durable: appendonly === 'yes' }
}

function told(appendfsync: string): string {
  return appendfsync === 'everysec'
    ? 'everysec: a loss of power may take the last second'
    : appendfsync
}

/** Dangers that no permission makes harmless: the first write would fail. */
const isHopeless = (danger: string): boolean => /cannot write|oldest that will do/.test(danger)

export function refuseDangers(
  { dangers }: Findings,
  connection: RedisConnection,
  allowVolatile: boolean,
): void {
  const { tenant } = connection
  const serious = allowVolatile ? dangers.filter(isHopeless) : dangers
  if (serious.length === 0) return
  const hint = serious.every(isHopeless)
    ? ''
    : `. To use it all the same and accept that ${tenant.keeps} may be lost, put ?allowVolatile=true behind the URL`
  throw new RedriveError(
    'STORE_UNSAFE',
    `redis ${connection.place} is not safe: ${serious.join('; ')}${hint}`,
  )
}

/** Undefined where CONFIG is forbidden, as it is on many managed servers. */
async function configOf(connection: RedisConnection): Promise<Map<string, string> | undefined> {
  try {
    const config = new Map<string, string>()
    for (const setting of settings) {
      const [name, value] = (await connection.send('CONFIG', 'GET', setting)) as Reply[]
      if (name !== undefined) config.set(toText(name), toText(value))
    }
    return config.size > 0 ? config : undefined
  } catch (error) {
    if (isForbidden((error as Error).cause)) return undefined
    throw error
  }
}

function infoIn(text: string): Map<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line.includes(':'))
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < 6 || (major === 6 && minor < 2)
}

/**
 * Marks an empty place as ours with the version in `meta` under "schema", and refuses one that a newer Redrive has changed.
 * Returns the version that is there, which may be an older one.
 */
export async function checkSchema(connection: RedisConnection, newest = 1): Promise<number> {
  const { tag } = connection
  const found = await connection.send('HGET', `${tag}:meta`, 'schema')
  if (found === null) {
    await connection.send('HSETNX', `${tag}:meta`, 'schema', String(newest))
    return newest
  }
  if (Number(toText(found)) > newest)
    throw new RedriveError(
      'STORE_UNSAFE',
      `the keys ${tag} were written by a newer Redrive (schema ${toText(found)}): use that one, or another prefix`,
    )
  return Number(toText(found))
}
