import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { passThrough } from '../../src/stores/pass-through.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter, fakeClock, type FakeClock } from '../../src/testing/index.ts'
import { aQueue, forbidden, refused } from '../a-queue.ts'
import * as postgres from '../stores/postgres/postgres-bench.ts'
import { openRedisBench, single as redis } from '../stores/redis/redis-bench.ts'
import { openSqliteBench, temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'

const { openPostgresBench } = postgres

interface Bench {
  store: Store
  close: () => Promise<void>
}

const memoryBench = async (clock: FakeClock): Promise<Bench> => {
  const store = memoryStore({ clock })
  return { store, close: () => store.close() }
}

const kinds: [
  name: string,
  open: (clock: FakeClock) => Promise<Bench>,
  missing?: string | undefined,
][] = [
  ['memory', memoryBench],
  ['sqlite', (clock) => openSqliteBench(clock)],
  ['postgres', () => openPostgresBench(), postgres.missing],
  ['redis', (clock) => openRedisBench(clock), redis.missing],
]

const cause = (word: string): Error => {
  const error = new Error(`the ${word} failed`)
  delete error.stack
  return error
}

const ended: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

async function open(
  kind: (typeof kinds)[number][1],
  options: QueueOptions = {},
): Promise<{ dlq: DeadLetterQueue; clock: FakeClock; store: Store }> {
  const clock = fakeClock()
  const { store, close } = await kind(clock)
  ended.push(close)
  const dlq = await DeadLetterQueue.open(store, { clock, ...options })
  ended.push(() => dlq.close())
  return { dlq, clock, store }
}

async function enqueue(dlq: DeadLetterQueue, word: string, count = 1): Promise<string> {
  const failure = { operation: { type: 'a' }, error: cause(word) }
  const ids = await dlq.enqueueAll(Array.from({ length: count }, () => failure))
  return (await dlq.get(ids[0]!))!.fingerprint
}

for (const [name, kind, missing] of kinds)
  describe.skipIf(missing)(`groups on a ${name} store`, () => {
    it('are listed with exact counts, by state, page by page', async () => {
      const { dlq } = await open(kind)
      const disk = await enqueue(dlq, 'disk', 3)
      const net = await enqueue(dlq, 'network', 2)
      const [first] = (await dlq.find({ group: disk })).items
      await dlq.resolve(first!.id)
      const page = await dlq.groups({ limit: 1 })
      expect(page.items).toMatchObject([
        {
          fingerprint: disk,
          title: 'Error: the disk failed',
          queue: 'a',
          status: 'open',
          count: 3,
          states: { pending: 2, resolved: 1 },
          growth: 3,
        },
      ])
      const rest = await dlq.groups({ limit: 1, cursor: page.cursor! })
      expect(rest).toMatchObject({ items: [{ fingerprint: net, count: 2 }] })
      expect(rest).not.toHaveProperty('cursor')
      const pending = await dlq.groups({ state: 'pending' })
      expect(pending.items.map(({ count }) => count)).toEqual([2, 2])
      expect((await dlq.groups({ queue: 'b' })).items).toEqual([])
    })

    it('are sorted by last seen and by growth', async () => {
      const { dlq, clock } = await open(kind)
      const old = await enqueue(dlq, 'disk', 3)
      await clock.advance(30 * 3_600_000)
      const fresh = await enqueue(dlq, 'network', 2)
      const order = async (sort: 'lastSeen' | 'growth'): Promise<string[]> =>
        (await dlq.groups({ sort })).items.map(({ fingerprint }) => fingerprint)
      expect(await order('lastSeen')).toEqual([fresh, old])
      expect(await order('growth')).toEqual([fresh, old])
      expect((await dlq.groups()).items[0]!.fingerprint).toBe(old)
    })

    it('have details from the records of all processes', async () => {
      const { dlq, clock, store } = await open(kind, {
        app: { host: 'web-1', version: '1.0.0' },
      })
      const other = await DeadLetterQueue.open(store, {
        clock,
        app: { host: 'web-2', version: '1.1.0' },
      })
      const disk = await enqueue(dlq, 'disk', 2)
      await clock.advance(1000)
      await enqueue(other, 'disk', 3)
      await other.stop()
      const group = (await dlq.group(disk))!
      expect(group).toMatchObject({ count: 5, states: { pending: 5 }, notes: [], history: [] })
      expect(group.hosts.map(({ name: host, count }) => [host, count])).toEqual([
        ['web-2', 3],
        ['web-1', 2],
      ])
      expect(group.versions.map((version) => version.name)).toEqual(['1.1.0', '1.0.0'])
      expect(group.trend.hours.at(-1)!.count).toBe(5)
      expect(group.firstSeen < group.lastSeen).toBe(true)
      expect(await dlq.get(group.sampleId)).toMatchObject({ fingerprint: disk })
      expect(await dlq.group('unknown')).toBeUndefined()
    })

    it('can be merged for later letters and in filters, and split again', async () => {
      const { dlq } = await open(kind)
      const disk = await enqueue(dlq, 'disk', 3)
      const net = await enqueue(dlq, 'network', 2)
      expect(await dlq.mergeGroups(net, [disk], 'ada')).toMatchObject({
        fingerprint: net,
        merged: [disk],
        count: 5,
        states: { pending: 5 },
        history: [{ by: 'ada', change: 'merge', note: disk }],
      })
      await enqueue(dlq, 'disk')
      const { items } = await dlq.groups()
      expect(items).toMatchObject([{ fingerprint: net, merged: [disk], count: 6 }])
      expect((await dlq.find({ group: net })).items).toHaveLength(6)
      const plan = await dlq.plan('archive', { group: disk }, { by: 'ada', reason: 'over' })
      expect(plan.count).toBe(6)
      expect(await dlq.splitGroup(disk, 'ada')).toMatchObject({ fingerprint: disk, count: 4 })
      expect((await dlq.groups()).items.map(({ count }) => count)).toEqual([4, 2])
    })
  })

describe('groups', () => {
  it('filter by status', async () => {
    const { dlq } = await aQueue()
    const disk = await enqueue(dlq, 'disk')
    const net = await enqueue(dlq, 'network')
    await dlq.ignoreGroup(disk, 'ada')
    const listed = async (status: 'open' | 'ignored'): Promise<string[]> =>
      (await dlq.groups({ status })).items.map(({ fingerprint }) => fingerprint)
    expect([await listed('open'), await listed('ignored')]).toEqual([[net], [disk]])
    expect((await dlq.groups({ status: ['resolved', 'ignored'] })).items).toHaveLength(1)
    expect((await dlq.groups()).items).toHaveLength(2)
  })

  it('are read with the same number of store calls for any number of groups', async () => {
    const calls: string[] = []
    const { dlq } = await aQueue({}, (clock) => {
      const inner = memoryStore({ clock })
      const list: Store['records']['list'] = (recordKind, query) => {
        calls.push(`list ${recordKind}`)
        return inner.records.list(recordKind, query)
      }
      const tally: Store['tally'] = (by, filter) => {
        calls.push(`tally ${by}`)
        return inner.tally(by, filter)
      }
      const get: Store['records']['get'] = (recordKind, id) => {
        calls.push(`get ${recordKind}`)
        return inner.records.get(recordKind, id)
      }
      return passThrough(inner, { tally, records: passThrough(inner.records, { get, list }) })
    })
    for (const word of ['disk', 'network', 'printer']) await enqueue(dlq, word)
    await dlq.stop()
    calls.length = 0
    expect((await dlq.groups()).items).toHaveLength(3)
    expect(calls).toEqual(['list group', 'tally group', 'tally groupState', 'list group-seen'])
  })

  it('are left out when they are also in queues other than those of `within`', async () => {
    const { dlq, store } = await aQueue()
    const inQueue = (fingerprint: string, queue: string): ReturnType<typeof aLetter> =>
      aLetter({ fingerprint, queue })
    await store.add([inQueue('one', 'a'), inQueue('two', 'a'), inQueue('two', 'b')])
    await store.add([inQueue('three', 'b')])
    const captured = await enqueue(dlq, 'disk')
    const listed = async (within: string[]): Promise<string[]> =>
      (await dlq.groups({ within })).items.map(({ fingerprint }) => fingerprint).sort()
    expect(await listed(['a'])).toEqual(['one', captured].sort())
    expect(await listed(['a', 'b'])).toEqual(['one', 'three', 'two', captured].sort())
    expect(await listed([])).toEqual([])
    expect(await dlq.group('two', { within: ['a'] })).toBeUndefined()
    expect(await dlq.group('two', { within: ['a', 'b'] })).toMatchObject({ count: 2 })
    await dlq.mergeGroups('one', ['three'], 'ada')
    expect(await dlq.group('one', { within: ['a'] })).toBeUndefined()
    for (const within of ['a', [1]])
      await expect(dlq.groups({ within } as never)).rejects.toThrow('within must be an array')
  })

  it('derive what they can from letters without a record', async () => {
    const { dlq, store } = await aQueue()
    const letter = aLetter({ fingerprint: 'imported', queue: 'mail' })
    await store.add([letter])
    const expected = { queue: 'mail', count: 1, sampleId: letter.id, status: 'open' }
    expect((await dlq.groups()).items).toMatchObject([expected])
    expect(await dlq.group('imported')).toMatchObject(expected)
    expect(await dlq.resolveGroup('imported', 'ada')).toMatchObject({ status: 'resolved' })
  })

  it('record every change with actor and time, and emit an event for it', async () => {
    const { dlq, clock, eventsOf } = await aQueue()
    const disk = await enqueue(dlq, 'disk')
    await dlq.assignGroup(disk, 'ada', 'grace')
    await clock.advance(1000)
    await dlq.noteGroup(disk, 'grace', 'the disk is being replaced')
    await dlq.resolveGroup(disk, 'grace', { inVersion: '2.0.0' })
    const group = await dlq.reopenGroup(disk, 'ada')
    expect(group).toMatchObject({
      status: 'open',
      assignee: 'grace',
      notes: [{ by: 'grace', at: '2026-01-01T00:00:01.000Z', text: 'the disk is being replaced' }],
    })
    const changes = group.history.map(({ by, change }) => `${by} ${change}`)
    expect(changes).toEqual(['ada assign', 'grace note', 'grace resolve', 'ada reopen'])
    expect(eventsOf('group').map(({ by, change }) => `${by} ${change}`)).toEqual(changes)
    expect(eventsOf('group')[0]).toMatchObject({ fingerprint: disk, title: group.title })
  })

  it('keep their history when their letters are removed', async () => {
    const { dlq } = await aQueue()
    const disk = await enqueue(dlq, 'disk')
    await dlq.noteGroup(disk, 'ada', 'known')
    await dlq.clear({ group: disk }, { confirm: 1 })
    expect((await dlq.groups()).items).toEqual([])
    expect(await dlq.group(disk)).toMatchObject({ count: 0, states: {}, notes: [{ by: 'ada' }] })
  })

  it('merge chains, and refuse to merge a group into itself', async () => {
    const { dlq } = await aQueue()
    const [a, b, c] = [
      await enqueue(dlq, 'disk'),
      await enqueue(dlq, 'network'),
      await enqueue(dlq, 'printer'),
    ] as const
    await dlq.mergeGroups(b, [a], 'ada')
    await dlq.mergeGroups(c, [b], 'ada')
    expect(await dlq.group(a)).toMatchObject({ fingerprint: c, count: 3 })
    await expect(dlq.mergeGroups(a, [c], 'ada')).rejects.toThrow('cannot be merged into itself')
    await dlq.splitGroup(b, 'ada')
    expect((await dlq.groups()).items.map(({ count }) => count)).toEqual([2, 1])
    await expect(dlq.splitGroup(c, 'ada')).rejects.toThrow('is not merged into another group')
  })

  it('are merged after a restart as well', async () => {
    const directory = await temporaryDirectory()
    ended.push(directory.clear)
    const url = `sqlite:${join(directory.path, 'letters.db')}`
    const first = await DeadLetterQueue.open(url)
    const disk = await enqueue(first, 'disk', 2)
    const net = await enqueue(first, 'network')
    await first.mergeGroups(net, [disk], 'ada')
    await first.close()
    const second = await DeadLetterQueue.open(url)
    ended.push(() => second.close())
    await enqueue(second, 'disk')
    expect((await second.groups()).items).toMatchObject([{ fingerprint: net, count: 4 }])
    expect(await second.group(net)).toMatchObject({
      count: 4,
      queues: [{ name: 'a', count: 4 }],
      history: [{ change: 'merge' }],
    })
  })

  it.each<[string, (dlq: DeadLetterQueue) => Promise<unknown>, string]>([
    ['resolve', (dlq) => dlq.resolveGroup('f', 'ada'), 'there is no group "f"'],
    ['by', (dlq) => dlq.reopenGroup('f', ''), '`by` must be a non-blank string, got ""'],
    [
      'key',
      (dlq) => dlq.resolveGroup('f', 'a', { version: '1' } as never),
      'unknown key "version"',
    ],
    ['count', (dlq) => dlq.ignoreGroup('f', 'a', { count: 0 }), '`count` must be a positive'],
    ['until', (dlq) => dlq.ignoreGroup('f', 'a', { until: 'soon' }), '`until` must be a Date or'],
    ['note', (dlq) => dlq.noteGroup('f', 'a', 5 as never), '`note` must be a non-blank string'],
    ['others', (dlq) => dlq.mergeGroups('f', [], 'a'), 'there is no group "f"'],
    ['group', (dlq) => dlq.group(5 as never), '`fingerprint` must be a non-blank string, got 5'],
    ['letter', (dlq) => dlq.explainGroup('x'), 'there is no letter x'],
  ])('reject bad input: %s', async (_, call, message) => {
    const { dlq } = await aQueue()
    await expect(call(dlq)).rejects.toThrow(message)
  })
})

describe('the fingerprint rules of a queue', () => {
  it('decide the group of captured and of retried letters', async () => {
    const { dlq } = await aQueue({
      fingerprints: [
        { match: { queue: 'a', code: 'ECONNREFUSED' }, fingerprint: 'gateway-down' },
        { match: { message: /forbidden/i }, fingerprint: '{queue}-{name}-{code}-{status}' },
      ],
    })
    const { id, fingerprint } = await dlq.enqueue({ type: 'a' }, refused())
    expect(fingerprint).toBe('gateway-down')
    expect((await dlq.fail(id, forbidden())).fingerprint).toBe('a-Error-none-403')
    expect((await dlq.enqueue({ type: 'b' }, refused())).fingerprint).toMatch(/^v1-/)
    expect(await dlq.explainGroup(id)).toMatchObject({
      fingerprint: 'a-Error-none-403',
      computed: 'a-Error-none-403',
      parts: [{ part: 'rule', value: 'a-Error-none-403' }],
    })
  })
})

describe('explainGroup', () => {
  it('names the rule that decides the category', async () => {
    const user = { name: 'moved', when: { message: 'moved away' }, category: 'dependency' } as const
    const { dlq } = await aQueue({ rules: [user] })
    const refusedLetter = await dlq.enqueue({ type: 'a' }, refused())
    expect(await dlq.explainGroup(refusedLetter.id)).toMatchObject({
      category: 'network',
      rule: 'code:ECONNREFUSED',
    })
    const moved = await dlq.enqueue({ type: 'a' }, new Error('the host has moved away'))
    expect(await dlq.explainGroup(moved.id)).toMatchObject({
      category: 'dependency',
      rule: 'user:moved',
    })
  })

  it('names the frames, or the words that were masked', async () => {
    const { dlq } = await aQueue()
    const failure = cause('order 17 of "ada"')
    const { id, fingerprint } = await dlq.enqueue({ type: 'a' }, failure)
    expect(await dlq.explainGroup(id)).toEqual({
      category: 'unknown',
      rule: 'unknown',
      fingerprint,
      group: fingerprint,
      computed: fingerprint,
      parts: [
        { part: 'queue', value: 'a' },
        { part: 'name', value: 'Error' },
        { part: 'message', value: 'the order # of # failed' },
      ],
      frames: [],
      masked: ['17', '"ada"'],
    })
    const thrown = await dlq.enqueue({ type: 'a' }, new Error('with a stack'))
    const { frames, masked } = await dlq.explainGroup(thrown.id)
    expect(frames.some(({ frame, used }) => used && frame.includes('groups.test.ts'))).toBe(true)
    expect(masked).toEqual([])
  })
})

describe('sqlite store with groups', () => {
  it('adds up what two processes record about one group at once', async () => {
    const directory = await temporaryDirectory()
    ended.push(directory.clear)
    const path = join(directory.path, 'letters.db')
    const clock = fakeClock()
    const queues = await Promise.all(
      ['web-1', 'web-2'].map((host) =>
        DeadLetterQueue.open(sqliteStore({ path, clock }), { clock, app: { host } }),
      ),
    )
    ended.push(() => Promise.all(queues.map((dlq) => dlq.close())))
    let disk = ''
    for (let round = 0; round < 5; round++) {
      for (const dlq of queues) disk = await enqueue(dlq, 'disk', 10)
      await Promise.all(queues.map((dlq) => dlq.stop()))
    }
    const group = (await queues[0]!.group(disk))!
    expect(group).toMatchObject({ count: 100, queues: [{ name: 'a', count: 100 }] })
    expect(group.hosts.map(({ count }) => count)).toEqual([50, 50])
    expect(group.trend.days.at(-1)!.count).toBe(100)
  })
})
