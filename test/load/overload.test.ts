import { describe, expect, it } from 'vitest'
import { capture, captureRequest } from './capture.ts'
import { compareWithStore, Ledger } from './ledger.ts'
import { withServer } from './load.ts'

const clients = 40
const timeout = 240_000

/** Sends `each` failures from every client at the same time. */
function captureAll(
  client: Parameters<typeof capture>[0]['target']['client'],
  ledger: Ledger,
  each: number,
  isKeyed: boolean,
): Promise<void[]> {
  return Promise.all(
    Array.from({ length: clients }, async (_, number) => {
      for (let n = 0; n < each; n++) {
        const key = `c${number}-${n}`
        await capture({ target: { client }, ledger, key, isKeyed, isOver: () => false })
      }
    }),
  )
}

describe('a server with too much to do', () => {
  it('answers 503 with Retry-After at once, and loses nothing', { timeout }, async () => {
    await withServer(
      undefined,
      async (server, client, storeUrl) => {
        const ledger = new Ledger()
        const live = client.send({ method: 'GET', path: '/livez' })
        await captureAll(client, ledger, 5, true)
        expect((await live).status).toBe(200)
        const { lost, repeated, letters } = await compareWithStore(storeUrl, ledger)
        expect([...lost, ...repeated, ...ledger.problems, ...server.errors()]).toEqual([])
        expect(letters).toBe(clients * 5)
        expect(ledger.statuses.get(503)).toBeGreaterThan(0)
      },
      clients + 1,
      { set: ['server.maxRequests=4'] },
    )
  })

  it('answers 429 with Retry-After when the store is full', { timeout }, async () => {
    await withServer(
      undefined,
      async (server, client, storeUrl) => {
        const ledger = new Ledger()
        await captureAll(client, ledger, 5, false)
        const { lost, letters } = await compareWithStore(storeUrl, ledger)
        expect([...lost, ...ledger.problems, ...server.errors()]).toEqual([])
        expect({ letters, acknowledged: ledger.acknowledged.size }).toEqual({
          letters: 100,
          acknowledged: 100,
        })
        expect(ledger.statuses.get(429)).toBe(clients * 5 - 100)
        const { status, body } = await client.send(captureRequest('late', false))
        expect({ status, body: JSON.parse(body) as unknown }).toMatchObject({
          status: 429,
          body: { code: 'QUEUE_FULL', retry: true },
        })
      },
      clients,
      { set: ['maxItems=100'] },
    )
  })
})
