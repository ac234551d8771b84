import assert from 'node:assert/strict'
import { createClient, RESP_TYPES } from 'redis'
import { afterEach, beforeEach, describe, it } from 'vitest'
import { states } from '../../../src/letter/letter.ts'
import { park, resolve } from '../../../src/letter/moves.ts'
import { redisStore, type RedisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { single } from './redis-bench.ts'

const plain = () => createClient({ url: single.url })

describe.skipIf(single.missing !== undefined)('fsck', () => {
  let place: Place
  let store: RedisStore
  let client: ReturnType<typeof plain>
  let tag: string

  beforeEach(async () => {
    place = redisPlace(single.url)
    tag = `{${place.name}}`
    store = redisStore({ url: single.url, prefix: place.name })
    client = plain()
    await client.connect()
    await store.open()
  })

  afterEach(async () => {
    await store.close()
    client.destroy()
    await place.clear()
  })

  const found = async (): Promise<string[]> => {
    const page = await store.find({ order: 'oldest' })
    return page.items.map(({ id }) => id)
  }

  /** Everything is as it should be, by a fresh look. */
  const sound = async (): Promise<void> => {
    const { examples, letters: _, ...report } = await store.fsck()
    assert.deepEqual({ examples, ...report }, { ...nothing, repaired: false })
  }

  const nothing = { unreadable: 0, missing: 0, strays: 0, counts: 0, examples: [] as string[] }

  const mixed = () => [
    aLetter({ lane: 'l', tags: ['a', 'b'], dedupeKey: 'k', tenant: 't' }),
    aLetter({ lane: 'l', dependsOn: ['nobody'] }),
    aLetter({ state: 'parked', reason: 'operator', settledAt: '2026-01-01T00:00:00.000Z' }),
    aLetter({ state: 'resolved', expiresAt: '2027-01-01T00:00:00.000Z' }),
    aLetter({ state: 'archived', archivedFrom: 'pending' }),
  ]

  it('finds nothing in a consistent store', async () => {
    await store.add(mixed())
    await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
    await sound()
    assert.equal((await store.fsck()).letters, 5)
  })

  it('finds nothing of removed letters', async () => {
    await store.add(mixed())
    await store.add([aLetter({ dedupeKey: 'k' })])
    await store.remove({ state: [...states] })
    await store.records.put('kind', 'id', 1)
    await store.records.remove('kind', 'id')
    await store.claim({ worker: 'w', limit: 1, leaseMs: 100 })
    const keys: string[] = []
    for await (const some of client.scanIterator({ MATCH: `${tag}:*`, COUNT: 1000 }))
      keys.push(...some)
    assert.deepEqual(keys.sort(), [`${tag}:meta`, `${tag}:totals`])
  })

  it('finds index entries of a manually deleted letter, which lists skip', async () => {
    const [gone, ...others] = mixed()
    await store.add([gone!, ...others])
    await client.unlink(`${tag}:l:${gone!.id}`)
    assert.deepEqual(
      await found(),
      others.slice(0, 3).map(({ id }) => id),
    )
    assert.deepEqual(await store.get([gone!.id]), [])
    assert.deepEqual((await store.claim({ worker: 'w', limit: 9, leaseMs: 100 })).letters, [])
    const { ok, problems } = await store.health()
    assert.equal(ok, false)
    assert.match(problems.join(), /doctor --repair/)
    const report = await store.fsck()
    assert.ok(report.strays > 0)
    assert.ok(report.counts! > 0)
    assert.equal((await store.fsck({ repair: true })).repaired, true)
    await sound()
    assert.deepEqual(await store.tally('queue'), new Map([['orders', 3]]))
  })

  it('releases the lane of a manually deleted letter', async () => {
    const [head, next] = [aLetter({ lane: 'l' }), aLetter({ lane: 'l' })]
    await store.add([head, next])
    await client.unlink(`${tag}:l:${head.id}`)
    await store.fsck({ repair: true })
    const { letters } = await store.claim({ worker: 'w', limit: 9, leaseMs: 100 })
    assert.deepEqual(
      letters.map(({ id }) => id),
      [next.id],
    )
    await sound()
  })

  it('finds letters that are missing in indexes, and adds them', async () => {
    const letters = mixed()
    await store.add(letters)
    const keys: string[] = []
    for await (const some of client.scanIterator({ MATCH: `${tag}:*`, COUNT: 1000 }))
      keys.push(...some.filter((key) => /:(?:[aisdwgtnofk]:|[xyq]$)/.test(key.slice(tag.length))))
    assert.ok(keys.length > 15)
    await client.unlink(keys)
    assert.deepEqual(await found(), [])
    const report = await store.fsck({ repair: true })
    assert.ok(report.missing > 15, `${report.missing} places`)
    await sound()
    assert.equal((await found()).length, 4)
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 9, leaseMs: 100 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      [letters[0]!.id],
    )
  })

  it('finds queues that are missing for claims, and adds them', async () => {
    const letters = [aLetter(), aLetter(), aLetter({ queue: 'mails' })]
    await store.add(letters)
    await client.unlink(`${tag}:q`)
    const asked = { worker: 'w', limit: 9, leaseMs: 60_000 }
    assert.deepEqual((await store.claim(asked)).letters, [], 'nobody would hear of them')
    const report = await store.fsck()
    assert.equal(report.missing, 3)
    assert.match(report.examples.join(), /is not where it should be in q/)
    await store.fsck({ repair: true })
    await sound()
    assert.equal((await store.claim(asked)).letters.length, 3)
  })

  const idsOf = (letters: readonly { id: string }[]): string[] => letters.map(({ id }) => id)

  it('finds missing dependents of a letter, and adds them', async () => {
    const first = aLetter()
    const next = aLetter({ dependsOn: [first.id, 'nobody'] })
    const last = aLetter({ dependsOn: [first.id] })
    await store.add([first, next, last])
    await client.unlink(`${tag}:v:${first.id}`)
    const report = await store.fsck()
    assert.equal(report.missing, 2)
    assert.match(report.examples.join(), new RegExp(`${next.id} .* in v:${first.id}`))
    await store.fsck({ repair: true })
    await sound()
    await store.apply([resolve(first, { at: first.updatedAt, actor: 'ada', guard: 'version' })])
    const { letters } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    assert.deepEqual(idsOf(letters), [last.id])
  })

  it('releases letters that a resolved letter did not release', async () => {
    const first = aLetter()
    const next = aLetter({ dependsOn: [first.id], retryAt: '2026-01-01T00:00:00.000Z' })
    await store.add([first, next])
    await client.unlink(`${tag}:v:${first.id}`)
    await store.apply([resolve(first, { at: first.updatedAt, actor: 'ada', guard: 'version' })])
    const asked = { worker: 'w', limit: 9, leaseMs: 60_000 }
    assert.deepEqual((await store.claim(asked)).letters, [], 'it waits for ever')
    assert.equal((await store.fsck()).missing, 1)
    assert.equal((await store.fsck({ repair: true })).missing, 1)
    await sound()
    assert.deepEqual(idsOf((await store.claim(asked)).letters), [next.id])
  })

  it('finds manually changed counts', async () => {
    await store.add(mixed())
    const cells = await client.hKeys(`${tag}:cells`)
    await client.hIncrBy(`${tag}:cells`, cells[0]!, 5)
    await client.hSet(`${tag}:cells`, '7:nowhere', '3')
    await client.hDel(`${tag}:states`, '0')
    assert.equal((await store.fsck()).counts, 3)
    assert.equal((await store.fsck({ repair: true })).counts, 3)
    await sound()
  })

  it('reports only a letter with a damaged origin as corrupt', async () => {
    const letters = [aLetter(), aLetter(), aLetter()]
    await store.add(letters)
    await damage(`${tag}:b:${letters[1]!.id}`, 'order.create', 'order.delete')
    const corrupt = (await store.find({ order: 'oldest' })).items.map((one) => one.corrupt)
    assert.deepEqual(corrupt, [undefined, 'the origin does not match its checksum', undefined])
    const [seen] = await store.get([letters[1]!.id])
    const by = { at: seen!.updatedAt, actor: 'ada', guard: 'version' } as const
    assert.deepEqual(await store.apply([park(seen!, by, { reason: 'operator' })]), ['written'])
    assert.match((await store.get([letters[1]!.id]))[0]!.corrupt!, /checksum/, 'still')
  })

  it('finds letters that wait for a number of letters that is wrong', async () => {
    const first = aLetter()
    const next = aLetter({ dependsOn: [first.id] })
    await store.add([first, next])
    await client.unlink(`${tag}:p:${next.id}`)
    const report = await store.fsck()
    assert.equal(report.missing, 1)
    assert.match(report.examples.join(), new RegExp(`${next.id} .* in p:${next.id}`))
    await store.fsck({ repair: true })
    const { letters } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    assert.deepEqual(idsOf(letters), [first.id, next.id])
  })

  async function replaceByHash(key: string): Promise<void> {
    await client.unlink(key)
    await client.hSet(key, 'field', 'value')
  }

  /** Replaces text in a string. */
  async function damage(key: string, text: string, other: string): Promise<void> {
    const value = await client.sendCommand<Buffer>(['GET', key], {
      typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer },
    })
    assert.ok(value.includes(text), `${key} has ${text}`)
    const damaged = value.toString('latin1').replace(text, other)
    await client.set(key, Buffer.from(damaged, 'latin1'))
  }

  it.each([
    ['the row', 'row', (id: string) => client.set(`${tag}:l:${id}`, 'nonsense')],
    ['the failure', 'f', (id: string) => client.hSet(`${tag}:m:${id}`, 'f', '{"name"')],
    ['the history', 'h', (id: string) => client.append(`${tag}:l:${id}`, '[1,')],
    ['the origin', 'o', (id: string) => damage(`${tag}:b:${id}`, '{', '0')],
    ['the bytes', 'b', (id: string) => client.append(`${tag}:b:${id}`, 'xxxxx')],
    ['the body', 'b', (id: string) => replaceByHash(`${tag}:b:${id}`)],
  ])('tolerates garbage in place of %s', async (_what, part, spoil) => {
    const letters = [aLetter(), aLetter({ dedupeKey: 'k' }), aLetter()]
    await store.add(letters)
    const bad = letters[1]!
    await spoil(bad.id)
    assert.deepEqual(
      await found(),
      letters.map(({ id }) => id),
    )
    const got = await store.get(letters.map(({ id }) => id))
    assert.deepEqual(
      got.map(({ corrupt }) => corrupt !== undefined),
      [false, true, false],
    )
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    const others = claimed.filter(({ id }) => id !== bad.id)
    assert.equal(others.length, 2)
    assert.equal((await store.fsck()).unreadable, part === 'row' ? 1 : 0)
    if (part === 'row') assert.equal(await store.remove({ ids: [bad.id] }), 1)
    await store.add([aLetter({ dedupeKey: 'k' })])
  })

  it('tolerates a key of another type in place of a letter', async () => {
    const letters = [aLetter(), aLetter({ lane: 'l' })]
    await store.add(letters)
    const [bad, good] = letters.map(({ id }) => id)
    await replaceByHash(`${tag}:l:${bad}`)
    assert.deepEqual(await found(), [bad, good])
    assert.match((await store.get([bad!]))[0]!.corrupt!, /cannot be read/)
    assert.deepEqual((await store.add([letters[0]!]))[0]!.kind, 'duplicate')
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      [good],
    )
    assert.equal((await store.fsck()).unreadable, 1)
    assert.equal(await store.remove({ ids: [bad!] }), 1)
    assert.equal((await store.fsck({ repair: true })).repaired, true)
    await sound()
  })

  it('tolerates that a body is missing', async () => {
    const letters = [aLetter(), aLetter()]
    await store.add(letters)
    await client.unlink(`${tag}:b:${letters[0]!.id}`)
    const [first, second] = await store.get(letters.map(({ id }) => id))
    assert.notEqual(first!.corrupt, undefined)
    assert.equal(second!.corrupt, undefined)
    await found()
    await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    await store.fsck({ repair: true })
  })

  it('removes parts of letters that no longer exist', async () => {
    const letter = aLetter({ tags: ['t'] })
    await store.add([letter, aLetter()])
    await client.unlink(`${tag}:l:${letter.id}`)
    assert.equal(await client.exists([`${tag}:b:${letter.id}`, `${tag}:m:${letter.id}`]), 2)
    await store.fsck({ repair: true })
    assert.equal(await client.exists([`${tag}:b:${letter.id}`, `${tag}:m:${letter.id}`]), 0)
    await sound()
  })
})
