import { describe, expect, it } from 'vitest'
import type { CallOptions, ProblemError } from '../../src/api/client.ts'
import { endpointNames, endpointOf } from '../../src/api/endpoints.ts'
import { RedriveError } from '../../src/errors.ts'
import type { Json } from '../../src/letter/letter.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'
import { examples } from './examples.ts'

let server: TestServer

withServerInEachTest((started) => (server = started))

const error = { message: 'no' }

const keyed = endpointNames.filter((name) => {
  const { method, permission, body, secret, stream } = endpointOf(name)
  const isKept = body !== 'lines' && !secret && stream === undefined
  return method !== 'GET' && permission !== 'public' && isKept
})
const dayMs = 24 * 3_600_000

async function aLetter(): Promise<string> {
  const { id } = await server.dlq.enqueue(
    { type: 'a', payload: { card: 'card-4111' } },
    new Error('no'),
  )
  return id
}

async function count(): Promise<number> {
  return (await server.dlq.find()).items.length
}

describe('Idempotency-Key', () => {
  it('makes a request act once, and repeats its response', async () => {
    const client = await server.client()
    const key = { idempotencyKey: 'key 1' }
    const first = await client.capture({ queue: 'a', json: 1, error }, key)
    expect(await client.capture({ queue: 'a', json: 1, error }, key)).toEqual(first)
    expect(await count()).toBe(1)
  })

  it.each(keyed)('repeats the response of %s', async (name) => {
    const client = await server.client()
    const input = await examples[name].input(server)
    const call = client[name] as (input: object, options: CallOptions) => Promise<unknown>
    const send = (): Promise<unknown> =>
      call(input, { idempotencyKey: 'key' }).catch((error: ProblemError) => {
        const { requestId: _, ...problem } = error.problem
        return problem
      })
    const first = await send()
    const again = await send()
    // A letter that is gone is repeated without its content.
    if (name === 'removeLetter') expect(again).toMatchObject({ ...input, hidden: true })
    else expect(again).toEqual(first)
  })

  it('belongs to one caller and one request', async () => {
    const client = await server.client()
    const key = { idempotencyKey: 'key' }
    await client.capture({ queue: 'a', json: 1, error }, key)
    await expect(client.capture({ queue: 'a', json: 2, error }, key)).rejects.toMatchObject({
      problem: { status: 422, code: 'KEY_REUSED' },
    })
    const other = await server.client({ name: 'bob' })
    await other.capture({ queue: 'a', json: 2, error }, key)
    const fewerRights = await server.client({ permissions: ['letter:capture'] })
    await expect(fewerRights.capture({ queue: 'a', json: 1, error }, key)).rejects.toMatchObject({
      problem: { code: 'KEY_REUSED' },
    })
    expect(await count()).toBe(2)
  })

  it('rejects the same request while it runs: one of many acts', async () => {
    const client = await server.client()
    const sent = Array.from({ length: 10 }, () =>
      client.capture({ queue: 'a', json: 1, error }, { idempotencyKey: 'key' }),
    )
    const settled = await Promise.allSettled(sent)
    for (const one of settled)
      if (one.status === 'rejected')
        expect(one.reason).toMatchObject({ problem: { status: 409, code: 'KEY_IN_USE' } })
    expect(settled.some(({ status }) => status === 'fulfilled')).toBe(true)
    expect(await count()).toBe(1)
  })

  it('adds the same letter when the server died before its response', async () => {
    const client = await server.client()
    const failure = { queue: 'a', json: 1, error }
    const first = await client.capture(failure, { idempotencyKey: 'key' })
    const [record] = await server.store.records.list('idempotency')
    const { response: _, ...unanswered } = record!.value as { response: Json; newId: string }
    await server.store.records.put('idempotency', record!.id, unanswered, record!.version)
    expect(await client.capture(failure, { idempotencyKey: 'key' })).toEqual(first)
    expect(await client.capture(failure, { idempotencyKey: 'key' })).toEqual(first)
    expect(await count()).toBe(1)
  })

  it('adds the same letter when the outcome of the write was unknown', async () => {
    const client = await server.client()
    const failure = { queue: 'a', json: 1, error }
    const add = server.store.add.bind(server.store)
    server.store.add = async (letters, capacity) => {
      await add(letters, capacity)
      throw new RedriveError('STORE_UNAVAILABLE', 'the connection was lost')
    }
    await expect(client.capture(failure, { idempotencyKey: 'key' })).rejects.toMatchObject({
      problem: { code: 'STORE_UNAVAILABLE' },
    })
    server.store.add = add
    server.errors.length = 0
    await client.capture(failure, { idempotencyKey: 'key' })
    expect(await count()).toBe(1)
  })

  it('does not keep the secret of a token: a repeated request is a conflict', async () => {
    const client = await server.client()
    const notKept = { problem: { status: 409, code: 'RESPONSE_NOT_KEPT', retry: false } }
    const input = { name: 'ci', permissions: ['admin' as const] }
    const created = await client.createToken(input, { idempotencyKey: 'create' })
    const { id } = created.info
    const rotated = await client.rotateToken({ id }, { idempotencyKey: 'rotate' })
    const before = await server.tokens.list()
    await expect(client.createToken(input, { idempotencyKey: 'create' })).rejects.toMatchObject(
      notKept,
    )
    await expect(client.rotateToken({ id }, { idempotencyKey: 'rotate' })).rejects.toMatchObject(
      notKept,
    )
    expect(await server.tokens.list()).toEqual(before)
    const records = JSON.stringify(await server.store.records.list('idempotency'))
    for (const { token } of [created, rotated]) expect(records).not.toContain(token)
  })

  it('repeats a letter that was removed, without content', async () => {
    const client = await server.client()
    const id = await aLetter()
    const key = { idempotencyKey: 'key' }
    expect((await client.removeLetter({ id }, key)).payload.json).toEqual({ card: 'card-4111' })
    const again = await client.removeLetter({ id }, key)
    expect(again).toMatchObject({ id, hidden: true })
    const records = await server.store.records.list('idempotency')
    expect(JSON.stringify([again, records])).not.toContain('card-4111')
  })

  it('repeats a letter with its content while it has not changed', async () => {
    const client = await server.client()
    const id = await aLetter()
    const first = await client.parkLetter({ id }, { idempotencyKey: 'key' })
    expect(await client.parkLetter({ id }, { idempotencyKey: 'key' })).toEqual(first)
  })

  it('repeats a problem that stays, but not one that may go away', async () => {
    const client = await server.client()
    const id = await aLetter()
    const restored = client.restoreLetter({ id }, { idempotencyKey: 'stays' })
    await expect(restored).rejects.toMatchObject({ problem: { code: 'ILLEGAL_MOVE' } })
    await client.archiveLetter({ id })
    await expect(client.restoreLetter({ id }, { idempotencyKey: 'stays' })).rejects.toMatchObject({
      problem: { code: 'ILLEGAL_MOVE' },
    })
    await client.restoreLetter({ id }, { idempotencyKey: 'new' })
  })

  it('is kept for 24 hours, then removed', async () => {
    const client = await server.client()
    const failure = { queue: 'a', json: 1, error }
    await client.capture(failure, { idempotencyKey: 'key' })
    await server.clock.advance(dayMs - 1000)
    await client.capture(failure, { idempotencyKey: 'key' })
    expect(await count()).toBe(1)
    await server.clock.advance(120_000)
    await client.capture({ ...failure, json: 2 }, { idempotencyKey: 'other' })
    expect(await server.store.records.list('idempotency')).toHaveLength(1)
    await client.capture(failure, { idempotencyKey: 'key' })
    expect(await count()).toBe(3)
  })

  it('must be printable and short, and is not for streams', async () => {
    const client = await server.client()
    const rejected = { problem: { status: 400, code: 'INVALID_INPUT' } }
    for (const idempotencyKey of ['', 'x'.repeat(201), 'é'])
      await expect(client.capture({ queue: 'a', error }, { idempotencyKey })).rejects.toMatchObject(
        rejected,
      )
    const stream = client.captureMany({}, { lines: ['{}'], idempotencyKey: 'key' })
    await expect(stream.next()).rejects.toMatchObject(rejected)
  })
})
