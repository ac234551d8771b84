import { afterEach, describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { edit, type Change } from '../../src/letter/moves.ts'
import { decodePayload, encodePayload } from '../../src/letter/payload.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Mailbox, Message } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ReturnedLetter } from '../../src/taps/tap.ts'
import { refused } from '../a-queue.ts'
import { mailboxKinds } from '../faults/mailbox-kinds.ts'
import { deadLetterOne } from '../loops/dead-letter-one.ts'
import { aForeignLetter } from '../taps/a-foreign-letter.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean()
})

async function open(
  options: QueueOptions = {},
  store: string | Store = 'memory:',
): Promise<DeadLetterQueue> {
  const dlq = await DeadLetterQueue.open(store, options)
  cleanups.push(() => dlq.close())
  return dlq
}

async function receiveOne(mailbox: Mailbox): Promise<Message> {
  const [message] = await mailbox.receive({ waitSeconds: 5 })
  await message?.acknowledge()
  return message!
}

const memory = {
  missing: undefined,
  begin: async () => ({
    url: (name: string) => `memory:#${name}`,
    clear: async () => {},
  }),
}

describe.each(['memory', 'sqlite', 'redis'] as const)(
  'replay of a letter of a loop on a %s mailbox',
  (kind) => {
    const { missing, begin } = kind === 'memory' ? memory : mailboxKinds[kind]

    it.skipIf(missing)(
      'publishes to the mailbox, counts the replays of all its letters, and parks at the limit',
      async () => {
        const ground = await begin()
        cleanups.push(() => ground.clear())
        const requests = await openMailbox(ground.url('requests'))
        cleanups.push(() => requests.close())
        const dlq = await open({ maxReplays: 2 })
        await requests.send(
          { order: 1 },
          { headers: { tenant: 'acme' }, replyTo: 'replies', id: 'm-1' },
        )

        const first = await deadLetterOne(dlq, requests)
        expect(first).toMatchObject({ replays: 0 })
        const replayed = await dlq.replay(first.id, 'mia')
        expect(replayed).toMatchObject({ state: 'resolved', replays: 1 })
        expect(replayed.history.at(-1)).toMatchObject({
          actor: 'mia',
          action: 'replay',
          to: 'resolved',
          note: 'published to mailbox requests',
        })

        const second = await deadLetterOne(dlq, requests)
        expect(second.id).not.toBe(first.id)
        expect(second).toMatchObject({
          replays: 1,
          failedAt: first.failedAt,
          source: { kind: 'mailbox', mailbox: 'requests', replyTo: 'replies' },
          headers: { tenant: 'acme', 'redrive-replays': '1', 'redrive-original-id': 'm-1' },
        })
        expect(decodePayload(second.payload)).toEqual({ order: 1 })
        await dlq.replay(second.id)

        const third = await deadLetterOne(dlq, requests)
        expect(third).toMatchObject({ replays: 2 })
        const parked = await dlq.replay(third.id)
        expect(parked).toMatchObject({ state: 'parked', reason: 'replay-limit', replays: 2 })
        expect(parked.review).toEqual({ neededSince: parked.settledAt })
        expect(await requests.approximateCount()).toBe(0)
        const { lifetime } = await dlq.stats()
        expect(lifetime).toMatchObject({ captured: 3, replayed: 2, parked: 1, resolved: 0 })
      },
      60_000,
    )
  },
)

/** A memory store whose next write of a replay does something else first. */
function interrupted(before: (inner: Store) => Promise<void>): Store {
  const inner = memoryStore()
  const apply = inner.apply.bind(inner)
  let done = false
  return Object.assign(inner, {
    apply: async (changes: readonly Change[]) => {
      if (changes[0]?.action === 'replay' && !done) {
        done = true
        await before(inner)
      }
      return apply(changes)
    },
  })
}

async function aDeadLetter(
  options: QueueOptions = {},
  store: string | Store = 'memory:',
): Promise<{ dlq: DeadLetterQueue; requests: Mailbox; letter: DeadLetter }> {
  const dlq = await open(options, store)
  const requests = await aMailbox('requests')
  await requests.send({ order: 1 })
  return { dlq, requests, letter: await deadLetterOne(dlq, requests) }
}

async function aMailbox(name: string): Promise<Mailbox> {
  const mailbox = memoryMailbox({ name })
  await mailbox.open()
  cleanups.push(() => mailbox.close())
  return mailbox
}

describe('DeadLetterQueue.replay', () => {
  it('publishes the edited payload', async () => {
    const { dlq, requests, letter } = await aDeadLetter()
    await dlq.edit(letter.id, { payload: { order: 2 }, reason: 'typo', by: 'mia' })
    await dlq.replay(letter.id)
    expect((await receiveOne(requests)).value()).toEqual({ order: 2 })
  })

  it('emits an event for the outcome', async () => {
    const { dlq, letter } = await aDeadLetter()
    const types: string[] = []
    dlq.on('*', ({ type }) => types.push(type))
    await dlq.replay(letter.id)
    const { dlq: spent, letter: other } = await aDeadLetter({ maxReplays: 0 })
    spent.on('*', ({ type }) => types.push(type))
    await spent.replay(other.id)
    expect(types).toEqual(['replayed', 'changed', 'parked', 'changed'])
  })

  it('keeps the letter when the replay could not be recorded, and publishes one message for both attempts', async () => {
    const store = interrupted(async () => {
      throw new Error('the process ended here')
    })
    const { dlq, requests, letter } = await aDeadLetter({}, store)
    await expect(dlq.replay(letter.id)).rejects.toThrow('the process ended here')
    expect(await dlq.get(letter.id)).toMatchObject({ state: letter.state, replays: 0 })
    expect(await requests.approximateCount()).toBe(1)
    expect(await dlq.replay(letter.id)).toMatchObject({ state: 'resolved', replays: 1 })
    expect(await requests.approximateCount()).toBe(1)
  })

  it('keeps the letter when publishing fails', async () => {
    const { dlq, requests, letter } = await aDeadLetter()
    const failing = Object.assign(Object.create(requests) as Mailbox, {
      send: () => Promise.reject(new RedriveError('MAILBOX_UNAVAILABLE', 'the broker is away')),
    })
    const refusal = dlq.replay(letter.id, 'mia', { to: failing })
    await expect(refusal).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    expect(await dlq.get(letter.id)).toEqual(letter)
  })

  it('records a replay of a letter that was tagged concurrently', async () => {
    const store = interrupted(async (inner) => {
      const [letter] = (await inner.find({ limit: 1, payload: true })).items
      const by = { at: letter!.updatedAt, actor: 'tom', guard: 'version' } as const
      await inner.apply([edit(letter!, by, { tags: ['seen'] })])
    })
    const { dlq, requests, letter } = await aDeadLetter({}, store)
    const now = await dlq.replay(letter.id)
    expect(now).toMatchObject({ state: 'resolved', replays: 1, tags: ['seen'] })
    expect(await requests.approximateCount()).toBe(1)
  })

  it('rejects with VERSION_CONFLICT when the payload was edited concurrently', async () => {
    const store = interrupted(async (inner) => {
      const [letter] = (await inner.find({ limit: 1, payload: true })).items
      const by = { at: letter!.updatedAt, actor: 'tom', guard: 'version' } as const
      const payload = { ...encodePayload({ order: 3 }), version: 2 }
      await inner.apply([edit(letter!, by, { payload })])
    })
    const { dlq, letter } = await aDeadLetter({}, store)
    const refusal = dlq.replay(letter.id)
    await expect(refusal).rejects.toMatchObject({ code: 'VERSION_CONFLICT' })
    await expect(refusal).rejects.toThrow('was published to mailbox requests, but changed')
  })

  it('rejects letters in other states, and unknown options', async () => {
    const { dlq, letter } = await aDeadLetter()
    await dlq.resolve(letter.id)
    await expect(dlq.replay(letter.id)).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    await expect(dlq.replay(letter.id, 'mia', { too: 'x' } as never)).rejects.toThrow(
      'unknown key "too" in replay options: did you mean "to"?',
    )
    await expect(dlq.replay(letter.id, '')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('the replay route', () => {
  it('is a mailbox of the option `mailboxes`, by URL or as an object', async () => {
    const { url, clear } = await mailboxKinds.sqlite.begin()
    cleanups.push(clear)
    const { letter } = await aDeadLetter()
    const opened = await aMailbox('requests')
    for (const requests of [url('requests'), opened]) {
      const dlq = await open({ mailboxes: { requests } })
      const store = memoryStore()
      await store.add([letter])
      const other = await open({ mailboxes: { requests } }, store)
      expect(await other.replay(letter.id)).toMatchObject({ state: 'resolved' })
      await dlq.close()
    }
    const file = await openMailbox(url('requests'))
    cleanups.push(() => file.close())
    for (const mailbox of [file, opened])
      expect((await receiveOne(mailbox)).value()).toEqual({ order: 1 })
  })

  it('is a mailbox of the resolver, which is never closed', async () => {
    const { letter } = await aDeadLetter()
    const opened = await aMailbox('elsewhere')
    const resolvedNames: string[] = []
    const store = memoryStore()
    await store.add([letter])
    const mailboxes = {
      resolve: (name: string) => (resolvedNames.push(name), opened),
      close: () => Promise.reject(new Error('closed')),
    }
    const dlq = await DeadLetterQueue.open(store, { mailboxes })
    await dlq.replay(letter.id)
    await dlq.close()
    expect(resolvedNames).toEqual(['requests'])
    expect((await receiveOne(opened)).headers).toMatchObject({ 'redrive-replays': '1' })
  })

  it('is another mailbox if `to` names one', async () => {
    const fixed = await aMailbox('requests-fixed')
    const { dlq, requests, letter } = await aDeadLetter({ mailboxes: { 'requests-fixed': fixed } })
    const now = await dlq.replay(letter.id, 'mia', { to: 'requests-fixed' })
    expect(now.history.at(-1)?.note).toBe('published to mailbox requests-fixed')
    expect((await receiveOne(fixed)).value()).toEqual({ order: 1 })
    expect(await requests.approximateCount()).toBe(0)
    await expect(dlq.replay(letter.id, 'mia', { to: 5 as never })).rejects.toMatchObject({
      code: 'ILLEGAL_MOVE',
    })
  })

  it('exists for an operation only if `to` names a mailbox', async () => {
    const inbox = await aMailbox('inbox')
    const dlq = await open()
    const { id } = await dlq.enqueue({ type: 'charge-card', payload: { order: 1 } }, refused())
    await expect(dlq.replay(id)).rejects.toMatchObject({ code: 'NO_ROUTE' })
    await expect(dlq.replay(id)).rejects.toThrow('an operation without an address: use retry')
    expect(await dlq.replay(id, 'mia', { to: inbox })).toMatchObject({ replays: 1 })
    expect(await receiveOne(inbox)).toMatchObject({
      headers: { 'redrive-replays': '1', 'redrive-original-id': id },
    })
  })

  it('is rejected with the name of an unknown mailbox', async () => {
    const { dlq, requests, letter } = await aDeadLetter()
    await requests.close()
    const refusal = dlq.replay(letter.id)
    await expect(refusal).rejects.toMatchObject({ code: 'NO_ROUTE' })
    await expect(refusal).rejects.toThrow('its mailbox "requests" is unknown in this process')
    await expect(dlq.replay(letter.id, 'mia', { to: 'constructor' })).rejects.toMatchObject({
      code: 'NO_ROUTE',
    })
    expect(await dlq.get(letter.id)).toEqual(letter)
  })

  it('is rejected as ambiguous when loops use two mailboxes with one name', async () => {
    const { dlq, letter } = await aDeadLetter()
    const other = await aMailbox('requests')
    await other.send({ order: 2 })
    await deadLetterOne(dlq, other)
    await expect(dlq.replay(letter.id)).rejects.toMatchObject({ code: 'NO_ROUTE' })
    expect(await dlq.replay(letter.id, 'mia', { to: other })).toMatchObject({ state: 'resolved' })
  })

  it('is the tap for a letter of a tap, with the limit of the tap', async () => {
    const sent: [ReturnedLetter, number][] = []
    const tap = {
      returnToSource: async (...args: [ReturnedLetter, number]) => void sent.push(args),
    }
    const dlq = await open({ maxReplays: 5 })
    const keep = dlq.foreignLetters()
    await keep(aForeignLetter())
    await keep(aForeignLetter({ messageId: 'm-2', headers: { 'redrive-replays': '2' } }))
    const [again, first] = (await dlq.find({})).items
    await expect(dlq.replay(first!.id)).rejects.toThrow('dlq.handle("orders", returnToSource(tap))')
    dlq.handle('orders', returnToSource(tap, { maxReplays: 2 }))
    expect(await dlq.replay(first!.id)).toMatchObject({ state: 'resolved', replays: 1 })
    expect(sent).toMatchObject([[{ messageId: 'm-1' }, 1]])
    expect(again).toMatchObject({ replays: 2 })
    expect(await dlq.replay(again!.id)).toMatchObject({ state: 'parked', reason: 'replay-limit' })
    dlq.handle('orders', returnToSource(tap))
    expect(await dlq.replay(again!.id)).toMatchObject({ state: 'resolved', replays: 3 })
    expect(sent.map(([, generation]) => generation)).toEqual([1, 3])
  })
})
