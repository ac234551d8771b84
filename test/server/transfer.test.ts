import { connect } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { withServerInEachTest, aServer, readAll, type TestServer } from './a-server.ts'
import { waitFor } from '../wait-for.ts'

let server: TestServer

withServerInEachTest((started) => (server = started))

async function fill(count: number, queue = 'a', payload: unknown = { card: '4111' }) {
  const failure = { operation: { type: queue, payload }, error: new Error('no') }
  return server.dlq.enqueueAll(Array.from({ length: count }, () => failure))
}

describe('export and import over HTTP', () => {
  it('carry letters to another store', async () => {
    const ids = await fill(3)
    const client = await server.client()
    await client.archiveLetter({ id: ids[0]! })
    const lines = await readAll(client.exportLetters())
    expect(lines).toHaveLength(5)
    const target = await aServer()
    const targetClient = await target.client()
    const report = await targetClient.importLetters(
      {},
      { lines: lines.map((line) => JSON.stringify(line)) },
    )
    expect(report).toMatchObject({ letters: 3, added: 3 })
    for (const id of ids)
      expect(await targetClient.getLetter({ id })).toEqual(await client.getLetter({ id }))
    await target.close()
  })

  it('export only letters of the filter and the scope', async () => {
    await fill(2, 'a')
    await fill(1, 'b')
    const client = await server.client({ queues: ['b'] })
    expect(await readAll(client.exportLetters())).toHaveLength(3)
    expect(await readAll(client.exportLetters({ queue: 'a' }))).toHaveLength(2)
    const viewer = await server.client({ role: 'viewer' })
    await expect(readAll(viewer.exportLetters())).rejects.toMatchObject({
      problem: { status: 403 },
    })
    const operator = await server.client({ role: 'operator' })
    await expect(operator.importLetters({}, { lines: [] })).rejects.toMatchObject({
      problem: { status: 403 },
    })
  })

  it('answer with a problem before the first line', async () => {
    const client = await server.client()
    await expect(readAll(client.exportLetters({ after: 'x' }))).rejects.toMatchObject({
      problem: { status: 400 },
    })
    await expect(client.importLetters({}, { lines: ['{}'] })).rejects.toMatchObject({
      problem: { status: 400, code: 'INVALID_INPUT' },
    })
  })

  it('have no HEAD, which would read everything', async () => {
    const authorization = `Bearer ${await server.token()}`
    const head = (path: string): Promise<Response> =>
      fetch(`${server.url}${path}`, { method: 'HEAD', headers: { authorization } })
    expect((await head('/api/export')).status).toBe(404)
    expect((await head('/livez')).status).toBe(200)
  })

  it('stop reading when the client has gone', async () => {
    await fill(400, 'a', 'x'.repeat(100_000))
    const read = vi.spyOn(server.store, 'stored')
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    const token = await server.token()
    socket.write(`GET /api/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`)
    await new Promise((resolve) => void socket.once('readable', resolve))
    socket.destroy()
    await waitFor(async () => expect(await connections()).toBe(0))
    const ids = read.mock.calls.flatMap(([some]) => some)
    expect(ids.length).toBeLessThan(400)
  })
})

function connections(): Promise<number> {
  return new Promise((resolve, reject) => {
    server.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
}
