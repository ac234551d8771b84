import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { release, type Change } from '../../src/letter/moves.ts'
import { decodePayload, encodePayload } from '../../src/letter/payload.ts'
import type { LetterFilter } from '../../src/letter/query.ts'
import { custom, fixed, immediate } from '../../src/policy/backoff.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aQueue, forbidden, refused } from '../a-queue.ts'

describe('Admin', () => {
  it('retry makes a letter due now; a settled one gets a fresh retry budget', async () => {
    const { dlq, clock } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 1 })
    await dlq.fail(id, refused())
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 1 })
    const letter = await dlq.retry(id, 'mia')
    expect(letter).toMatchObject({ state: 'pending', retries: 0 })
    expect(Date.parse(letter.retryAt!)).toBe(clock.now())
    expect(letter.reason).toBeUndefined()
    expect(letter.history.at(-1)).toMatchObject({
      actor: 'mia',
      action: 'retry',
      from: 'exhausted',
      to: 'pending',
    })
  })

  it('retry makes a letter due at a given time, and at once for a past time', async () => {
    const { dlq, clock } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, forbidden())
    const at = new Date(clock.now() + 60_000)
    expect(await dlq.retry(id, 'mia', { at })).toMatchObject({ retryAt: at.toISOString() })
    const passed = await dlq.retry(id, 'mia', { at: '2020-01-01T00:00:00Z' })
    expect(Date.parse(passed.retryAt!)).toBe(clock.now())
  })

  it.each<[string, object, string]>([
    ['a number as time', { at: 5 }, '`at` must be a Date or an ISO-8601 time'],
    ['a word as time', { at: 'tomorrow' }, 'got "tomorrow"'],
    ['a date that is none', { at: new Date(Number.NaN) }, 'got an invalid Date'],
    ['a wait that is no boolean', { wait: 5 }, '`wait` must be true or false'],
    ['a signal that is none', { signal: {} }, '`signal` must be an AbortSignal'],
    ['an unknown key', { when: 5 }, 'unknown key "when" in retry options'],
  ])('retry rejects %s, and changes nothing', async (_name, options, why) => {
    const { dlq } = await aQueue()
    const before = await dlq.enqueue({ type: 'a' }, refused())
    const refusal = dlq.retry(before.id, 'mia', options)
    await expect(refusal).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(refusal).rejects.toThrow(why)
    expect(await dlq.get(before.id)).toEqual(before)
  })

  it('fail counts a run, and exhausts at the limit', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 2 })
    expect(await dlq.fail(id, refused())).toMatchObject({ state: 'pending', retries: 1 })
    expect(await dlq.fail(id, refused())).toMatchObject({ state: 'exhausted', retries: 2 })
    await expect(dlq.fail(id, refused())).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
  })

  it('fail uses the backoff of the matching rule, like a run of a handler', async () => {
    const slow = { name: 'slow', when: { code: 'ECONNREFUSED' }, backoff: fixed(12_345) }
    const { dlq, clock } = await aQueue({ rules: [{ ...slow, category: 'network' }] })
    const { id } = await dlq.enqueue({ type: 'a' }, new Error('odd'), { policy: fixed(1000) })
    const letter = await dlq.fail(id, refused())
    expect(Date.parse(letter.retryAt!) - clock.now()).toBe(12_345)
  })

  it('fail reports an invalid backoff, like a run of a handler', async () => {
    const { dlq, eventsOf } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { priority: 'critical' })
    await dlq.fail(id, refused())
    expect(eventsOf('error')).toEqual([])
    const { id: odd } = await dlq.enqueue({ type: 'a' }, refused(), { policy: custom('none') })
    await dlq.fail(odd, refused())
    const messages = eventsOf('error').map(({ during, error }) => `${during}: ${String(error)}`)
    expect(messages.at(-1)).toBe('backoff of a: custom backoff "none" is not registered')
  })

  it.each<[string, (dlq: DeadLetterQueue, id: string) => Promise<unknown>]>([
    ['review by nobody', (dlq, id) => dlq.review(id, { decision: 'resolve' } as never)],
    ['retry by nobody', (dlq, id) => dlq.retry(id, '')],
    ['resolve by a number', (dlq, id) => dlq.resolve(id, 5 as never)],
    ['archive by null', (dlq, id) => dlq.archive(id, null as never)],
    ['remove by a number', (dlq, id) => dlq.remove(id, 5n as never)],
    ['park with a note that is no text', (dlq, id) => dlq.park(id, {} as never)],
  ])('rejects %s, and changes nothing', async (_name, act) => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { maxRetries: 1 })
    await dlq.fail(id, refused())
    const before = await dlq.get(id)
    await expect(act(dlq, id)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await dlq.get(id)).toEqual(before)
  })

  it('note adds an entry to the history, in every state', async () => {
    const { dlq, eventsOf } = await aQueue()
    const { id, ...before } = await dlq.enqueue({ type: 'a' }, refused())
    const noted = await dlq.note(id, 'customer was told', 'mia')
    expect(noted.history.at(-1)).toMatchObject({
      actor: 'mia',
      action: 'note',
      from: 'pending',
      to: 'pending',
      note: 'customer was told',
    })
    expect(noted).toMatchObject({ state: 'pending', retryAt: before.retryAt! })
    await dlq.archive(id)
    expect((await dlq.note(id, 'closed', 'tom')).state).toBe('archived')
    expect(eventsOf('changed').map(({ change }) => change.action)).toEqual([
      'note',
      'archive',
      'note',
    ])
  })

  it.each<[string, unknown, string]>([
    ['no text', '  \n', '`note` must be a non-blank string'],
    ['a number', 5, '`note` must be a non-blank string, got 5'],
    ['a long text', 'a'.repeat(4001), 'at most 4000 characters, got 4001'],
  ])('note rejects %s', async (_name, text, why) => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    const refusal = dlq.note(id, text as string, 'mia')
    await expect(refusal).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(refusal).rejects.toThrow(why)
  })

  it('edit applies a JSON Patch as a new version, which can be undone', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: { to: 'wrong', n: [1] } }, refused())
    const by = { reason: 'typo', by: 'mia' }
    const patch = [{ op: 'replace', path: '/to', value: 'right' }] as const
    const edited = await dlq.edit(id, { patch, ...by })
    expect(edited.payload.version).toBe(2)
    expect(decodePayload(edited.payload)).toEqual({ to: 'right', n: [1] })
    expect(decodePayload((await dlq.undoEdit(id, 'mia')).payload)).toEqual({ to: 'wrong', n: [1] })
    const before = await dlq.get(id)
    for (const [input, why] of [
      [{ patch: [{ op: 'test', path: '/to', value: 'x' }, ...patch] }, 'operation 1 of the patch'],
      [{ patch, payload: 1 }, 'either `payload` or `patch`'],
      [{ patch: null }, '`patch` must be an array'],
    ] as const) {
      const refusal = dlq.edit(id, { ...input, ...by } as never)
      await expect(refusal).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(refusal).rejects.toThrow(why)
    }
    expect(await dlq.get(id)).toEqual(before)
    expect(await dlq.payloads(id)).toHaveLength(2)
  })

  it('edit obeys the rules of the queue, and undoEdit restores what was there', async () => {
    const payloadSchema = { type: 'object', required: ['n'] }
    const { dlq } = await aQueue({ queues: { a: { lockedHeaders: ['auth'], payloadSchema } } })
    const { id } = await dlq.enqueue({ type: 'a', payload: {} }, refused(), {
      headers: { auth: 'x' },
    })
    const by = { reason: 'typo', by: 'mia' }
    for (const [input, why] of [
      [{ headers: {} }, 'header "auth" is locked in queue a'],
      [{ payload: { m: 1 } }, "must have required property 'n' (rule required)"],
      [{ patch: [{ op: 'add', path: '/m', value: 1 }] }, '(rule required)'],
    ] as const) {
      const refusal = dlq.edit(id, { ...input, ...by })
      await expect(refusal).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(refusal).rejects.toThrow(why)
    }
    expect(await dlq.payloads(id)).toHaveLength(1)
    await dlq.edit(id, { payload: { n: 1 }, headers: { auth: 'x', more: 'y' }, ...by })
    expect(decodePayload((await dlq.undoEdit(id)).payload)).toEqual({})
    const { id: other } = await dlq.enqueue({ type: 'b', payload: {} }, refused())
    await dlq.edit(other, { payload: 1, headers: { auth: 'y' }, ...by })
  })

  it('replay obeys the rule of the queue, also in a bulk action', async () => {
    const mailbox = memoryMailbox({ name: 'charges' })
    const { dlq } = await aQueue({
      queues: { never: { replay: 'never' }, keyed: { replay: 'idempotent-key' } },
      mailboxes: { charges: mailbox },
    })
    const { id: refusedId } = await dlq.enqueue({ type: 'never', payload: 1 }, forbidden())
    const { id: keyless } = await dlq.enqueue({ type: 'keyed', payload: 1 }, forbidden())
    const { id: keyed } = await dlq.enqueue({ type: 'keyed', payload: 1 }, forbidden(), {
      dedupeKey: 'order-1',
    })
    const to = { to: 'charges' }
    for (const [id, why] of [
      [refusedId, 'its queue allows no replay (option replay: never)'],
      [keyless, 'it has no idempotency-key header'],
    ] as const) {
      const before = await dlq.get(id)
      const refusal = dlq.replay(id, 'mia', to)
      await expect(refusal).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
      await expect(refusal).rejects.toThrow(why)
      expect(await dlq.get(id)).toEqual(before)
    }
    const plan = await dlq.plan('replay', {}, { ...to, by: 'mia', reason: 'fixed' })
    expect(plan.sample.map(({ id }) => id)).toEqual([keyed])
    expect(plan.ineligible.count).toBe(2)
    const replayed = await dlq.replay(keyed, 'mia', to)
    expect(replayed).toMatchObject({ state: 'resolved' })
    expect(replayed.headers).toBeUndefined()
    const [message] = await mailbox.receive()
    expect(message!.headers).toMatchObject({ 'idempotency-key': 'order-1', 'redrive-replays': '1' })
    await dlq.close()
    await mailbox.close()
  })

  it('park requires a review, and review records who decided what', async () => {
    const { dlq, clock } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    const parked = await dlq.park(id, 'looks odd', 'mia')
    expect(parked).toMatchObject({ state: 'parked', reason: 'operator' })
    expect(parked.review).toEqual({ neededSince: parked.updatedAt })
    await clock.advance(1000)
    const decided = await dlq.review(id, { decision: 'requeue', note: 'fixed upstream', by: 'tom' })
    expect(decided).toMatchObject({ state: 'pending', retries: 0 })
    expect(decided.review).toMatchObject({
      decidedBy: 'tom',
      decision: 'requeue',
      note: 'fixed upstream',
      neededSince: parked.updatedAt,
    })
  })

  it.each([
    ['resolve', 'resolved'],
    ['discard', 'archived'],
  ] as const)('review with %s ends %s', async (decision, state) => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, forbidden())
    expect((await dlq.review(id, { decision, by: 'tom' })).state).toBe(state)
  })

  it('edit creates a new version of the payload and keeps the first; undoEdit restores it', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: { to: 'wrong' } }, refused(), {
      tags: ['old'],
    })
    await dlq.edit(id, { payload: { to: 'right' }, tags: ['new'], reason: 'typo', by: 'mia' })
    const edited = (await dlq.get(id))!
    expect(decodePayload(edited.payload)).toEqual({ to: 'right' })
    expect(edited).toMatchObject({ tags: ['new'], payload: { version: 2 } })
    expect(decodePayload((await dlq.original(id))!)).toEqual({ to: 'wrong' })
    await dlq.undoEdit(id, 'mia')
    const undone = (await dlq.get(id))!
    expect(decodePayload(undone.payload)).toEqual({ to: 'wrong' })
    expect(undone).toMatchObject({ tags: ['old'], payload: { version: 3 } })
    await expect(dlq.undoEdit(id, 'mia')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it.each([
    ['a priority that is none', { priority: 'urgent' }, 'INVALID_INPUT'],
    ['tags that are no strings', { tags: [1] }, 'INVALID_INPUT'],
    ['tags in one text', { tags: 'abc' }, 'INVALID_INPUT'],
    ['headers that are no strings', { headers: { a: 1 } }, 'INVALID_INPUT'],
    ['a content type that is no text', { payload: 'x', contentType: 5 }, 'INVALID_INPUT'],
    ['nobody who did it', { by: 5 }, 'INVALID_INPUT'],
    ['a payload that is too large', { payload: 'x'.repeat(200) }, 'TOO_LARGE'],
  ])('edit rejects %s, and changes nothing', async (_name, edit, code) => {
    const { dlq } = await aQueue({ maxPayloadBytes: 100 })
    const { id } = await dlq.enqueue({ type: 'a', payload: 1 }, refused())
    const before = await dlq.get(id)
    const refusal = dlq.edit(id, { reason: 'r', by: 'mia', ...edit } as never)
    await expect(refusal).rejects.toMatchObject({ code })
    expect(await dlq.get(id)).toEqual(before)
    await expect(dlq.undoEdit(id)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('concurrent edits can all be undone', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: 'first' }, refused(), { tags: ['red'] })
    await Promise.all([
      dlq.edit(id, { payload: 'second', reason: 'r', by: 'mia' }),
      dlq.edit(id, { tags: ['blue'], reason: 'r', by: 'tom' }),
    ])
    await dlq.undoEdit(id, 'mia')
    const letter = await dlq.undoEdit(id, 'mia')
    expect(decodePayload(letter.payload)).toBe('first')
    expect(letter.tags).toEqual(['red'])
  })

  it('concurrent identical edits can all be undone', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: 0 }, refused())
    for (const payload of [1, 2])
      await Promise.all([
        dlq.edit(id, { payload, reason: 'r', by: 'mia' }),
        dlq.edit(id, { payload, reason: 'r', by: 'mia' }),
      ])
    const undone: unknown[] = []
    for (let nth = 0; nth < 4; nth++)
      undone.push(decodePayload((await dlq.undoEdit(id, 'mia')).payload))
    expect(undone).toEqual([2, 1, 1, 0])
    await expect(dlq.undoEdit(id)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('an edit that lost a conflict leaves nothing to undo', async () => {
    let claimed = false
    const { dlq, store } = await aQueue({}, (clock) => {
      const inner = memoryStore({ clock })
      const apply = inner.apply.bind(inner)
      return Object.assign(inner, {
        apply: async (changes: readonly Change[]) => {
          if (changes[0]?.action === 'edit' && !claimed) {
            claimed = true
            await inner.claim({ worker: 'w', limit: 1, leaseMs: 1000 })
          }
          return apply(changes)
        },
      })
    })
    const { id } = await dlq.enqueue({ type: 'a', payload: [1, 2] }, refused(), {
      policy: immediate(),
    })
    const edit = dlq.edit(id, { payload: 'other', reason: 'r', by: 'mia' })
    await expect(edit).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    const [running] = await store.get([id])
    const by = { at: running!.updatedAt, actor: 'w', guard: 'epoch' } as const
    const left = { ...encodePayload([2]), version: 2 }
    expect(await store.apply([release(running!, by, { payload: left })])).toEqual(['written'])
    await expect(dlq.undoEdit(id)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(decodePayload((await dlq.get(id))!.payload)).toEqual([2])
  })

  it('an edit that was retried is undone by one undo', async () => {
    let occurred = false
    const { dlq } = await aQueue({}, (clock) => {
      const inner = memoryStore({ clock })
      const apply = inner.apply.bind(inner)
      return Object.assign(inner, {
        apply: async (changes: readonly Change[]) => {
          if (changes[0]?.action === 'edit' && !occurred) {
            occurred = true
            await dlq.enqueue({ type: 'a' }, refused(), { dedupeKey: 'k' })
          }
          return apply(changes)
        },
      })
    })
    const { id } = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), { dedupeKey: 'k' })
    await dlq.edit(id, { payload: 2, reason: 'r', by: 'mia' })
    expect(decodePayload((await dlq.undoEdit(id)).payload)).toBe(1)
    await expect(dlq.undoEdit(id)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('edit copies metadata like a capture does', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    const metadata: { [key: string]: unknown } = { big: 1n }
    metadata['self'] = metadata
    const tags = ['one']
    await dlq.edit(id, { metadata: metadata as never, tags, reason: 'r', by: 'mia' })
    tags.push('two')
    expect(await dlq.get(id)).toMatchObject({
      tags: ['one'],
      metadata: { big: { $: ['bigint', '1'] } },
    })
  })

  it.each([
    [{ a: 1 }, 'application/json'],
    ['text', 'application/json'],
    [Buffer.from('x'), 'application/octet-stream'],
  ])(
    'edit treats a content type of null as none, like a capture does: %j',
    async (payload, contentType) => {
      const { dlq } = await aQueue()
      const untyped = { contentType: null as never }
      const { id } = await dlq.enqueue({ type: 'a', payload: 1 }, refused(), untyped)
      const letter = await dlq.edit(id, { payload, ...untyped, reason: 'r', by: 'mia' })
      expect(letter.payload).toMatchObject({ contentType, version: 2 })
    },
  )

  it('review rejects an unknown decision, and never throws', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, forbidden())
    const review = dlq.review(id, { decision: 'approve' as never, by: 'tom' })
    await expect(review).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('remove also removes the edits of the letter', async () => {
    const { dlq, store } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: 'of a person' }, refused())
    await dlq.edit(id, { payload: 'of nobody', reason: 'r', by: 'mia' })
    expect(await store.records.list('edit')).toHaveLength(1)
    await dlq.remove(id, 'mia')
    expect(await store.records.list('edit')).toEqual([])
  })

  it('remove emits its event even if removing the edits fails', async () => {
    const { dlq, store, eventsOf } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a', payload: 'of a person' }, refused())
    await dlq.edit(id, { payload: 'of nobody', reason: 'r', by: 'mia' })
    const list = store.records.list.bind(store.records)
    store.records.list = () => Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'away'))
    await expect(dlq.remove(id, 'mia')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    store.records.list = list
    expect(await dlq.get(id)).toBeUndefined()
    expect(eventsOf('removed')).toMatchObject([{ count: 1, by: 'mia' }])
  })

  it('the handler gets the edited payload', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const { id } = await dlq.enqueue({ type: 'a', payload: 1 }, forbidden())
    await dlq.edit(id, { payload: 2, reason: 'fix', by: 'mia' })
    await dlq.retry(id, 'mia')
    const inputs: unknown[] = []
    dlq.handle('a', ({ input }) => void inputs.push(input))
    dlq.start()
    await clock.advance(0)
    expect(inputs).toEqual([2])
    await dlq.close()
  })

  it('archive hides a letter, restore returns it to its previous state', async () => {
    const { dlq } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, forbidden())
    await dlq.archive(id, 'mia')
    expect((await dlq.find()).items).toEqual([])
    expect((await dlq.find({ state: 'archived' })).items).toHaveLength(1)
    expect(await dlq.restore(id, 'mia')).toMatchObject({ state: 'parked', reason: 'permanent' })
  })

  it('remove deletes the letter and returns it', async () => {
    const { dlq, eventsOf } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    expect((await dlq.remove(id, 'mia')).id).toBe(id)
    expect(await dlq.get(id)).toBeUndefined()
    expect(eventsOf('removed')).toMatchObject([{ count: 1, by: 'mia' }])
  })

  it('rejects with LETTER_NOT_FOUND for unknown ids, and with ILLEGAL_MOVE and the legal states', async () => {
    const { dlq } = await aQueue()
    const nobody = '0198c0de-0000-7000-8000-000000000001'
    await expect(dlq.retry(nobody)).rejects.toMatchObject({ code: 'LETTER_NOT_FOUND' })
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.resolve(id)
    await expect(dlq.retry(id)).rejects.toThrow(
      'retry is possible when it is pending, exhausted, parked',
    )
  })

  it('does not move a letter that a worker runs, but lets a person settle it', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate() })
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await store.claim({ worker: 'w', limit: 1, leaseMs: 1000 })
    for (const act of [
      () => dlq.retry(id),
      () => dlq.archive(id),
      () => dlq.remove(id),
      () => dlq.edit(id, { tags: [], reason: 'r', by: 'b' }),
    ])
      await expect(act()).rejects.toMatchObject({ code: 'ILLEGAL_MOVE' })
    expect(await dlq.resolve(id, 'mia')).toMatchObject({ state: 'resolved' })
    await clock.advance(5000)
    expect((await dlq.get(id))!.state).toBe('resolved')
  })

  it('clear removes only with the right number as confirmation', async () => {
    const { dlq } = await aQueue()
    for (let n = 0; n < 3; n++) await dlq.enqueue({ type: 'a' }, forbidden())
    await dlq.enqueue({ type: 'b' }, forbidden())
    await expect(dlq.clear({ queue: 'a' }, { confirm: 4 })).rejects.toThrow('3 letters match')
    expect(await dlq.clear({ queue: 'a' }, { confirm: 3 })).toBe(3)
    expect((await dlq.stats()).queues).toEqual({ b: 1 })
  })

  it('clear removes nothing for an unknown key or value', async () => {
    const { dlq } = await aQueue()
    for (const type of ['a', 'b']) await dlq.enqueue({ type }, refused())
    for (const filter of [{ status: 'resolved' }, { state: 'queued' }, { ids: 'abc' }, {}])
      for (const confirm of [0, 2])
        await expect(dlq.clear(filter as LetterFilter, { confirm })).rejects.toMatchObject({
          code: 'INVALID_INPUT',
        })
    const options = { confirm: 2, dryRun: true } as { confirm: number }
    await expect(dlq.clear({ state: 'pending' }, options)).rejects.toThrow('unknown key "dryRun"')
    expect((await dlq.stats()).size).toBe(2)
  })
})
