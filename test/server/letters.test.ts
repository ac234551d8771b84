import { describe, expect, it } from 'vitest'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer

withServerInEachTest((started) => (server = started))

const payload = { order: 42, card: '4111' }

async function capture(queue = 'charge-card', context = {}): Promise<string> {
  const { id } = await server.dlq.enqueue(
    { type: queue, payload },
    Object.assign(new Error('the gateway said no to 4111'), { code: 'EGATEWAY' }),
    { metadata: { region: 'eu' }, headers: { 'x-card': '4111' }, ...context },
  )
  return id
}

describe('letters over HTTP', () => {
  it('lists letters a page at a time, and reads one with its payload', async () => {
    const client = await server.client()
    const ids = [await capture(), await capture(), await capture()]
    const first = await client.listLetters({ limit: 2, order: 'oldest' })
    const second = await client.listLetters({ limit: 2, order: 'oldest', cursor: first.cursor })
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids)
    expect(second.cursor).toBeUndefined()
    const letter = await client.getLetter({ id: ids[0]! })
    expect(letter.payload.json).toEqual(payload)
  })

  it('leaves stacks out of a page, also those of causes', async () => {
    const client = await server.client()
    const error = new Error('no charge', { cause: new Error('no route') })
    await server.dlq.enqueue({ type: 'charge-card', payload }, Object.assign(error, { code: 'E1' }))
    const { items } = await client.listLetters()
    const causes = [{ name: 'Error', message: 'no route' }]
    expect(items[0]!.failure).toMatchObject({
      name: 'Error',
      message: 'no charge',
      code: 'E1',
      causes,
    })
    expect(JSON.stringify(items)).not.toContain('"stack"')
    const letter = await client.getLetter({ id: items[0]!.id })
    expect(letter.failure.stack).toContain('letters.test.ts')
    expect(letter.failure.causes[0]!.stack).toContain('letters.test.ts')
  })

  it('filters by lists, metadata and booleans in the query', async () => {
    const client = await server.client()
    const id = await capture('charge-card', { metadata: { region: 'eu', tries: 3 } })
    await capture('send-mail')
    const byQueue = await client.listLetters({ queue: ['charge-card', 'other'] })
    expect(byQueue.items.map((one) => one.id)).toEqual([id])
    const byMetadata = await client.listLetters({ metadata: { tries: 3, region: 'eu' } })
    expect(byMetadata.items.map((one) => one.id)).toEqual([id])
    expect((await client.listLetters({ dependent: true })).items).toEqual([])
  })

  it('acts on a letter in the name of the token', async () => {
    const client = await server.client({ name: 'bob' })
    const id = await capture()
    const parked = await client.parkLetter({ id, note: 'look at this' })
    expect(parked.state).toBe('parked')
    expect(parked.history.at(-1)).toMatchObject({ actor: 'bob', note: 'look at this' })
    const edited = await client.editLetter({ id, json: { order: 43 }, reason: 'typo' })
    expect(edited.payload.json).toEqual({ order: 43 })
    expect(await client.diffPayloads({ id })).toMatchObject({ kind: 'json' })
    expect((await client.getPayloads({ id })).map(({ json }) => json)).toEqual([
      payload,
      { order: 43 },
    ])
    expect((await client.undoEdit({ id })).payload.json).toEqual(payload)
    expect((await client.retryLetter({ id })).state).toBe('pending')
    await client.removeLetter({ id })
    await expect(client.getLetter({ id })).rejects.toMatchObject({
      problem: { status: 404, code: 'LETTER_NOT_FOUND' },
    })
  })

  it('shows no content to a caller without payload:read', async () => {
    const client = await server.client({ role: 'viewer' })
    const id = await capture()
    const shown = [
      await client.getLetter({ id }),
      await client.listLetters(),
      await client.getLineage({ id }),
    ]
    expect(JSON.stringify(shown)).not.toMatch(/4111|gateway said|"eu"/)
    await expect(client.getPayloads({ id })).rejects.toMatchObject({ problem: { status: 403 } })
    for (const filter of [{ text: '4111' }, { metadata: { region: 'eu' } }, { tag: 'x' }])
      await expect(client.listLetters(filter)).rejects.toMatchObject({ problem: { status: 403 } })
  })

  it('hides letters outside the scope of the token', async () => {
    const client = await server.client({ queues: ['send-mail'], tenants: ['acme'] })
    const id = await capture('charge-card', { tenant: 'acme' })
    const other = await capture('send-mail', { tenant: 'umbrella' })
    const mine = await capture('send-mail', { tenant: 'acme' })
    expect((await client.listLetters()).items.map((one) => one.id)).toEqual([mine])
    expect((await client.listLetters({ queue: 'charge-card' })).items).toEqual([])
    for (const hidden of [id, other])
      await expect(client.retryLetter({ id: hidden })).rejects.toMatchObject({
        problem: { status: 404 },
      })
    await expect(client.getStatistics()).rejects.toMatchObject({ problem: { status: 403 } })
    await expect(client.pauseQueue({ queue: 'charge-card', reason: 'x' })).rejects.toMatchObject({
      problem: { status: 403 },
    })
  })
})
