import { RedriveError } from '../../errors.ts'
import { isForbidden } from './errors.ts'
import { toText, type Reply, type RedisConnection } from './connection.ts'

/** The result of `inspect`. */
export interface Inspection {
  checks: Record<string, string>
  /** Settings that would break a guarantee. Opening fails, unless volatile servers are allowed. */
  dangers: string[]
  /** Whether the append-only file is on. */
  durable: boolean
}

const settings = ['appendonly', 'appendfsync', 'maxmemory-policy', 'aof-load-truncated'] as const

/** Checks the server: its version, its role, and whether acknowledged writes survive a crash. */
export async function inspect(connection: RedisConnection): Promise<Inspection> {
  const { tag, tenant } = connection
  // In a cluster, this follows the slot to the node that has the keys.
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
    appendfsync: appendonly === 'yes' ? describeSync(appendfsync) : 'no file to sync',
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

function describeSync(appendfsync: string): string {
  return appendfsync === 'everysec'
    ? 'everysec: a loss of power may take the last second'
    : appendfsync
}

/** Dangers that `allowVolatile` does not allow: the first write would fail. */
const isFatal = (danger: string): boolean => /cannot write|oldest that will do/.test(danger)

export function refuseDangers(
  { dangers }: Inspection,
  connection: RedisConnection,
  allowVolatile: boolean,
): void {
  const { tenant } = connection
  const serious = allowVolatile ? dangers.filter(isFatal) : dangers
  if (serious.length === 0) return
  const hint = serious.every(isFatal)
    ? ''
    : `. To use it anyway and accept that ${tenant.keeps} may be lost, set allowVolatile (in a URL: ?allowVolatile=true)`
  throw new RedriveError(
    'STORE_UNSAFE',
    `redis ${connection.place} is not safe: ${serious.join('; ')}${hint}`,
  )
}

/** Undefined where CONFIG is forbidden, as on many managed servers. */
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
 * Writes the schema version into an empty place (`meta`, field "schema"), and rejects keys of
 * another version, which stay as they are.
 */
export async function checkSchema(connection: RedisConnection, version = 1): Promise<void> {
  const { tag } = connection
  const meta = `${tag}:meta`
  const read = (): Promise<Reply> => connection.send('HGET', meta, 'schema')
  if ((await read()) === null) await connection.send('HSETNX', meta, 'schema', String(version))
  const found = Number(toText(await read()))
  if (found === version) return
  const advice =
    found > version ? 'a newer Redrive' : 'an older Redrive, and this one cannot read them'
  throw new RedriveError(
    'STORE_UNSAFE',
    `the keys ${tag} were written by ${advice} (schema ${found}): use that one, or another prefix`,
  )
}
