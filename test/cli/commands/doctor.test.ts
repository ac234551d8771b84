import { DatabaseSync } from 'node:sqlite'
import { createClient } from 'redis'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { redisPlace } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { aFolder, aStoreFile, expectToFit, redrive } from '../run-cli.ts'

const folder = aFolder()
const soon = toTimestamp(systemClock.now() + 3_600_000)

function damage(url: string, sql: string): void {
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  db.exec(sql)
  db.close()
}

describe('doctor', () => {
  it('reports a healthy store', async () => {
    const url = await aStoreFile(folder, [
      aLetter({ retryAt: soon }),
      aLetter({ state: 'resolved' }),
    ])
    const { out, err, exit } = await redrive(['doctor', '--store', url])
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    for (const part of [
      'ok   journal_mode: wal',
      '2 letters read, none corrupt',
      'agree with the letters',
      'is due in 59 min',
      'The store is healthy.',
    ])
      expect(out).toContain(part)
    expectToFit(
      out
        .split('\n')
        .slice(1)
        .filter((line) => !line.includes('path'))
        .join('\n'),
    )
  })

  it('reports stuck letters of a healthy store', async () => {
    const url = await aStoreFile(folder, [
      aLetter(),
      aLetter({ state: 'retrying' }),
      aLetter({ state: 'parked', reason: 'no-handler', queue: 'orphans' }),
    ])
    const { out, exit } = await redrive(['doctor', '--store', url])
    expect(exit).toBe(0)
    expect(out).toMatch(
      /warn due: letter \S+ of orders is late by \d+ d\n {5}Fix: Start a worker: none is running\.\n/,
    )
    expect(out).toContain('warn leases: 1 lease expired over a minute ago')
    expect(out).toContain(
      'warn no handler: 1 letter of orphans is parked, because no worker handles the queue\n     Fix: Start a worker with a handler for orphans; it runs the letters.\n',
    )
  })

  it('reports corrupt letters and wrong counts', async () => {
    const url = await aStoreFile(folder, [aLetter(), aLetter(), aLetter()])
    damage(
      url,
      'DELETE FROM bodies WHERE seq = (SELECT max(seq) FROM bodies); UPDATE counters SET n = n + 2;',
    )
    const { out, exit } = await redrive(['doctor', '--store', url])
    expect(exit).toBe(1)
    expect(out).toMatch(/FAIL letter \S+: corrupt: /)
    expect(out).toContain('FAIL count of state pending: is 5, but there are 3')
    expect(out).toContain('problems found.')
    const { out: document, exit: again } = await redrive(['doctor', '--json', '--store', url])
    expect(again).toBe(1)
    expect(JSON.parse(document)).toMatchObject({ ok: false, store: url })
  })

  it('reads no letters with --quick', async () => {
    const url = await aStoreFile(folder, [aLetter()])
    const { out } = await redrive(['doctor', '--quick', '--store', url])
    expect(out).not.toContain('letters:')
    expect(out).toContain('The store is healthy.')
  })
})

const redis = backend('redis')

describe.skipIf(redis.missing)('doctor on Redis', () => {
  it('finds indexes that do not match the letters, and repairs them', async () => {
    const place = redisPlace(redis.url)
    const url = `${redis.url}?prefix=${place.name}`
    const store = redisStore({ url })
    await store.open()
    await store.add([aLetter({ retryAt: soon }), aLetter({ retryAt: soon })])
    await store.close()
    const client = createClient({ url: redis.url })
    await client.connect()
    for await (const keys of client.scanIterator({ MATCH: `*${place.name}*` }))
      for (const key of keys) if ((await client.type(key)) === 'zset') await client.zPopMin(key)
    client.destroy()
    const checked = await redrive(['doctor', '--store', url])
    expect(checked.exit).toBe(1)
    expect(checked.out).toMatch(
      /FAIL indexes: \d+ entries missing, .*\n {5}Fix: Run redrive doctor --repair\./,
    )
    const repaired = await redrive(['doctor', '--repair', '--store', url])
    expect(repaired.out).toMatch(/warn indexes: .*: repaired/)
    const { out, exit } = await redrive(['doctor', '--store', url])
    expect({ sound: out.includes('The store is healthy.'), exit }).toEqual({ sound: true, exit: 0 })
    await place.clear()
  })
})
