import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../../src/api/client.ts'
import { createRandomBytes } from '../../src/clock/secret.ts'
import { decodePayload } from '../../src/letter/payload.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aFolder } from '../folders.ts'
import { aServer, type TestServer } from '../server/a-server.ts'
import { clause, row } from './rows.ts'

describe('the server', () => {
  let server: TestServer

  beforeEach(async () => {
    server = await aServer()
  })

  afterEach(async () => {
    await server.close()
    expect(server.errors).toEqual([])
  })

  const capture = async (): Promise<string> =>
    (await server.dlq.enqueue({ type: 'work', payload: { n: 1 } }, new Error('no'))).id

  describe(row('O9'), () => {
    it(clause('O9', 'admin API'), async () => {
      const client = await server.client({ role: 'operator' })
      const id = await capture()
      const { items } = await client.listLetters({ queue: 'work' })
      expect(items).toMatchObject([{ id, state: 'pending' }])
      expect((await client.getLetter({ id })).payload.json).toEqual({ n: 1 })
      expect(await client.parkLetter({ id, note: 'wait' })).toMatchObject({ state: 'parked' })
      expect(await client.retryLetter({ id })).toMatchObject({ state: 'pending' })
      expect(await client.archiveLetter({ id })).toMatchObject({ state: 'archived' })
      expect(await client.getHealth()).toMatchObject({ ok: true })
      expect(await client.getMetrics()).toMatchObject({ totalEnqueued: 1 })
    })
  })

  describe(row('W11'), () => {
    it(clause('W11', 'access control per operation (RBAC)'), async () => {
      const id = await capture()
      const forbidden = { problem: { status: 403, code: 'FORBIDDEN' } }
      const retry = (client: Client): Promise<unknown> => client.retryLetter({ id })
      const archive = (client: Client): Promise<unknown> => client.archiveLetter({ id })
      const retrier = await server.client({ permissions: ['letter:retry'] })
      const archiver = await server.client({ permissions: ['letter:archive'] })
      await expect(archive(retrier)).rejects.toMatchObject(forbidden)
      await expect(retry(archiver)).rejects.toMatchObject(forbidden)
      await retry(retrier)
      await archive(archiver)
      const viewer = await server.client({ role: 'viewer' })
      expect(await viewer.getLetter({ id })).toMatchObject({ state: 'archived', hidden: true })
      await expect(retry(viewer)).rejects.toMatchObject(forbidden)
      const operator = await server.client({ role: 'operator' })
      await operator.restoreLetter({ id })
      await expect(operator.removeLetter({ id })).rejects.toMatchObject(forbidden)
    })
  })
})

describe(row('W11'), () => {
  const folder = aFolder('encryption')

  it(clause('W11', 'encryption of sensitive data'), async () => {
    const file = join(folder, 'letters.db')
    const keys = { a: Buffer.from(createRandomBytes(32)).toString('base64') }
    const encryption = { current: 'a', keys }
    const dlq = await DeadLetterQueue.open(`sqlite:${file}`, { encryption })
    const payload = { card: '4111 1111 1111 1111' }
    const headers = { authorization: 'Bearer s3cr3t-t0ken' }
    const { id } = await dlq.enqueue({ type: 'charge', payload }, new Error('no'), { headers })
    const letter = (await dlq.get(id))!
    expect(decodePayload(letter.payload)).toEqual(payload)
    expect(letter.headers).toEqual(headers)
    await dlq.close()
    const stored = readFileSync(file, 'latin1')
    expect(stored).toContain('charge')
    expect(stored).not.toContain('4111')
    expect(stored).not.toContain('s3cr3t')
  })
})
