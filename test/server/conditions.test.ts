import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/api/client.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer
let client: Client
let id: string

withServerInEachTest(async (started) => {
  server = started
  client = await server.client()
  id = (await server.dlq.enqueue({ type: 'a', payload: 1 }, new Error('no'))).id
})

const failed = { problem: { status: 412, code: 'VERSION_CONFLICT' } }

describe('If-Match', () => {
  it('lets an action happen only if the letter has this version', async () => {
    await expect(client.parkLetter({ id }, { ifVersion: 7 })).rejects.toMatchObject(failed)
    const parked = await client.parkLetter({ id }, { ifVersion: 1 })
    expect(parked).toMatchObject({ version: 2, state: 'parked' })
  })

  it.each<[string, (ifVersion: number) => Promise<unknown>]>([
    ['retry', (ifVersion) => client.retryLetter({ id }, { ifVersion })],
    ['replay', (ifVersion) => client.replayLetter({ id }, { ifVersion })],
    ['resolve', (ifVersion) => client.resolveLetter({ id }, { ifVersion })],
    ['review', (ifVersion) => client.reviewLetter({ id, decision: 'requeue' }, { ifVersion })],
    ['note', (ifVersion) => client.noteLetter({ id, text: 'x' }, { ifVersion })],
    ['edit', (ifVersion) => client.editLetter({ id, json: 2, reason: 'x' }, { ifVersion })],
    ['archive', (ifVersion) => client.archiveLetter({ id }, { ifVersion })],
    ['restore', (ifVersion) => client.restoreLetter({ id }, { ifVersion })],
    ['remove', (ifVersion) => client.removeLetter({ id }, { ifVersion })],
  ])('holds for %s', async (_, act) => {
    await expect(act(9)).rejects.toMatchObject(failed)
    expect((await server.dlq.get(id))?.version).toBe(1)
  })

  it('holds for the undo of an edit', async () => {
    await client.editLetter({ id, json: 2, reason: 'x' })
    await expect(client.undoEdit({ id }, { ifVersion: 1 })).rejects.toMatchObject(failed)
    expect((await client.undoEdit({ id }, { ifVersion: 2 })).payload.json).toBe(1)
  })

  it('lets a removal happen only if nobody changes the letter at the same time', async () => {
    const { store } = server
    const apply = store.apply.bind(store)
    // Somebody else adds a note after the removal has read the letter.
    store.apply = async (changes) => {
      store.apply = apply
      await server.dlq.note(id, 'wait, I need this', 'bob')
      return apply(changes)
    }
    await expect(client.removeLetter({ id }, { ifVersion: 1 })).rejects.toMatchObject(failed)
    expect(await server.dlq.get(id)).toMatchObject({ state: 'pending', version: 2 })
    expect(await client.removeLetter({ id }, { ifVersion: 2 })).toMatchObject({ version: 2 })
    expect(await server.dlq.get(id)).toBeUndefined()
  })

  it('holds for the removal of an archived letter', async () => {
    await server.dlq.archive(id)
    await expect(client.removeLetter({ id }, { ifVersion: 1 })).rejects.toMatchObject(failed)
    await client.removeLetter({ id }, { ifVersion: 2 })
    expect(await server.dlq.get(id)).toBeUndefined()
  })

  it('lets one of several concurrent actions win', async () => {
    const acts = Array.from({ length: 5 }, (_, n) =>
      client.noteLetter({ id, text: `note ${n}` }, { ifVersion: 1 }),
    )
    const settled = await Promise.allSettled(acts)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await server.dlq.get(id))?.version).toBe(2)
  })

  it('is rejected if it is no version, or on another endpoint', async () => {
    const send = async (method: string, path: string, tag: string): Promise<number> => {
      const authorization = `Bearer ${await server.token()}`
      const headers = { authorization, 'if-match': tag }
      return (await fetch(`${server.url}${path}`, { method, headers })).status
    }
    expect(await send('POST', `/api/letters/${id}/archive`, '7')).toBe(400)
    expect(await send('POST', '/api/queues/a/resume', '"7"')).toBe(400)
    expect(await send('POST', `/api/letters/${id}/archive`, '*')).toBe(200)
  })
})

describe('If-None-Match', () => {
  it('saves the body of a letter that the client has already', async () => {
    const authorization = `Bearer ${await server.token()}`
    const get = (tag: string): Promise<Response> =>
      fetch(`${server.url}/api/letters/${id}`, { headers: { authorization, 'if-none-match': tag } })
    const first = await get('"9"')
    expect(first.headers.get('etag')).toBe('"1"')
    const second = await get('"9", W/"1"')
    expect([second.status, await second.text()]).toEqual([304, ''])
  })
})
