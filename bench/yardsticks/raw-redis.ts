import { createClient } from 'redis'
import { systemClock } from '../../src/clock/clock.ts'
import type { Location } from '../location.ts'
import type { RawEngine } from './raw-engine.ts'

/** ARGV: the due time, then pairs of id and payload. */
const add = `local due = {}
for n = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1] .. ARGV[n], 's', 0, 'p', ARGV[n + 1])
  due[n - 1], due[n] = ARGV[1], ARGV[n]
end
redis.call('ZADD', KEYS[2], unpack(due))`

/** ARGV: now, limit. Returns pairs of id and payload. */
const lease = `local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local found, due = {}, {}
for n, id in ipairs(ids) do
  redis.call('HSET', KEYS[1] .. id, 's', 1)
  found[2 * n - 1], found[2 * n] = id, redis.call('HGET', KEYS[1] .. id, 'p')
  due[2 * n - 1], due[2 * n] = ARGV[1] + 30000, id
end
if #ids > 0 then redis.call('ZADD', KEYS[2], unpack(due)) end
return found`

/** ARGV: the new due time, limit. Returns how many. */
const reschedule = `local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
local due = {}
for n, id in ipairs(ids) do
  redis.call('HSET', KEYS[1] .. id, 's', 0)
  due[2 * n - 1], due[2 * n] = ARGV[1], id
end
if #ids > 0 then redis.call('ZADD', KEYS[2], unpack(due)) end
return #ids`

/** ARGV: ids. */
const finish = `for n = 1, #ARGV do redis.call('HSET', KEYS[1] .. ARGV[n], 's', 2) end
redis.call('ZREM', KEYS[2], unpack(ARGV))`

/** Hashes and a sorted set in Redis: one script for each write. */
export async function openRawRedis(location: Location): Promise<RawEngine> {
  const prefix = new URL(location.url('raw')).searchParams.get('prefix')!
  const client = createClient({ url: location.at })
  client.on('error', () => {})
  await client.connect()
  const hashes = new Map<string, string>()
  for (const script of [add, lease, reschedule, finish])
    hashes.set(script, await client.scriptLoad(script))
  const run = (script: string, values: string[]): Promise<unknown> =>
    client.evalSha(hashes.get(script)!, {
      keys: [`{${prefix}}:i:`, `{${prefix}}:due`],
      arguments: values,
    })
  const now = (): string => String(systemClock.now())
  return {
    add: async (items) =>
      void (await run(add, [now(), ...items.flatMap(({ id, payload }) => [id, payload])])),
    drain: async (limit) => {
      const found = (await run(lease, [now(), String(limit)])) as string[]
      const ids = found.filter((_, at) => at % 2 === 0)
      if (ids.length > 0) await run(finish, ids)
      return ids.length
    },
    reschedule: async (limit, dueMs) =>
      Number(await run(reschedule, [String(dueMs), String(limit)])),
    close: async () => {
      for await (const keys of client.scanIterator({ MATCH: `{${prefix}}:*`, COUNT: 1000 }))
        if (keys.length > 0) await client.unlink(keys)
      client.destroy()
    },
  }
}
