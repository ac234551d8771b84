import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { webhook } from '../../src/observers/notify/webhook.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { aQueue, refused } from '../a-queue.ts'
import { aFolder } from '../folders.ts'
import { freshName } from '../servers/servers.ts'
import { clause, row } from './rows.ts'
import { onStore } from './stores.ts'
import { waitFor } from '../wait-for.ts'

const folder = aFolder('persistence')
let url: string
beforeEach(() => {
  url = `sqlite:${join(folder, `${freshName()}.db`)}`
})

describe(row('O5'), () => {
  it(clause('O5', 'a corrupt file is never overwritten'), async () => {
    const garbage = Buffer.from('[{"id":"dlq_1","status":"queued"')
    writeFileSync(url.slice('sqlite:'.length), garbage)
    await expect(DeadLetterQueue.open(url)).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
    expect(readFileSync(url.slice('sqlite:'.length))).toEqual(garbage)
  })

  describe(clause('O5', 'persistence survives kill -9 at any point'), () => {
    it('a restart continues with the pending letters, and resolved ones stay resolved', async () => {
      const first = await DeadLetterQueue.open(url)
      const done = await first.enqueue({ type: 'a' }, refused())
      const waiting = await first.enqueue({ type: 'a' }, refused())
      await first.resolve(done.id)
      await first.close()
      await using second = await DeadLetterQueue.open(url)
      expect((await second.get(done.id))!.state).toBe('resolved')
      const resolved = new Promise((tell) => second.on('resolved', ({ letter }) => tell(letter.id)))
      second.handle('a', () => {})
      second.start()
      await second.retry(waiting.id)
      expect(await resolved).toBe(waiting.id)
    })
  })
})

describe(row('O9'), () => {
  it(clause('O9', 'database storage'), async () => {
    await onStore('postgres', async (open) => {
      const [first, second] = await Promise.all([open(), open()])
      const { id } = await first.enqueue({ type: 'a', payload: { n: 1 } }, refused())
      expect(await second.get(id)).toMatchObject({ id, state: 'pending' })
      const resolved = new Promise((resolve) => second.on('resolved', resolve))
      second.handle('a', () => {})
      second.start()
      await second.retry(id)
      await resolved
      expect(await first.get(id)).toMatchObject({ state: 'resolved' })
    })
  })

  it(clause('O9', 'health monitoring'), async () => {
    const { dlq, clock } = await aQueue({ maxItems: 10 })
    expect(await dlq.health()).toMatchObject({ ok: true, store: { ok: true }, problems: [] })
    for (let n = 0; n < 9; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(61_000)
    const { alerts, processor } = await dlq.health()
    expect(processor.running).toBe(true)
    expect(alerts).toMatchObject([{ name: 'nearly-full' }])
    await dlq.close()
  })

  it(clause('O9', 'cleanup'), async () => {
    const retention = { archiveAfterMs: 3_600_000, removeAfterMs: 7_200_000 }
    const { dlq, clock } = await aQueue({ retention })
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.resolve(id)
    const { id: waiting } = await dlq.enqueue({ type: 'b' }, refused(), { policy: fixed(1e11) })
    dlq.start()
    await clock.advance(3_700_000)
    expect((await dlq.get(id))?.state).toBe('archived')
    await clock.advance(7_300_000)
    expect(await dlq.get(id)).toBeUndefined()
    expect((await dlq.get(waiting))?.state).toBe('pending')
    await dlq.close()
  })

  it(clause('O9', 'notifications'), async () => {
    const received: unknown[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (part) => (body += part))
      request.on('end', () => {
        received.push(JSON.parse(body))
        response.writeHead(200).end()
      })
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const hook = webhook({ url: `http://127.0.0.1:${port}/`, private: true })
    const { dlq, clock } = await aQueue({ maxItems: 10, notify: { hook } })
    for (let n = 0; n < 9; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(61_000)
    await waitFor(() => expect(received).toHaveLength(1))
    expect(received).toMatchObject([
      { type: 'alert.raised', data: { alert: { name: 'nearly-full' } } },
    ])
    await dlq.close()
    server.close()
  })
})

describe(row('O11'), () => {
  const item = {
    id: 'dlq_1700000000000_ab12',
    taskId: 'task-1',
    enqueuedAt: 1_700_000_000_000,
    updatedAt: 1_700_000_060_000,
    status: 'queued',
    priority: 'high',
    retryCount: 1,
    maxRetries: 3,
    retryAfter: 1_700_000_120_000,
    backoffMs: 60_000,
    error: {
      category: 'llm_rate_limit',
      message: 'Rate limit exceeded',
      code: '429',
      timestamp: 1_700_000_000_000,
    },
    operation: { type: 'llm_call', method: 'POST', payload: { prompt: 'hello' } },
    metadata: { enqueuedBy: 'system', tags: ['llm'], notes: 'n' },
    history: [{ timestamp: 1_700_000_000_000, action: 'enqueued', status: 'queued' }],
  }

  const categoryNames = (
    'llm_rate_limit llm_timeout llm_quota_exceeded llm_invalid_request llm_server_error ' +
    'github_rate_limit github_timeout github_not_found github_forbidden github_server_error ' +
    'github_validation tool_timeout tool_not_found tool_execution tool_permission ' +
    'verification_failed type_error lint_error test_failure build_failed ' +
    'file_not_found file_permission file_system network_error dns_error connection_error ' +
    'config_invalid config_missing skill_not_found skill_validation skill_timeout ' +
    'dependency_error system_error'
  ).split(' ')

  describe(clause('O11', "import of the seed's JSON file (.duyetbot-dlq.json shape)"), () => {
    it('imports each item once, and reports unreadable ones', async () => {
      const { dlq } = await aQueue()
      const text = JSON.stringify([
        item,
        { ...item, id: 'dlq_2', status: 'abandoned' },
        { nonsense: true },
      ])
      const report = await dlq.importOperations(text)
      expect(report).toMatchObject({ added: 2, duplicates: 0 })
      expect(report.problems).toHaveLength(1)
      expect(await dlq.importOperations(text)).toMatchObject({ added: 0, duplicates: 2 })
      const { items } = await dlq.find({ queue: 'llm_call', state: 'pending' })
      expect(items[0]).toMatchObject({ priority: 'high', retries: 1, maxRetries: 3, tags: ['llm'] })
    })

    it('refuses another file format', async () => {
      const { dlq } = await aQueue()
      await expect(dlq.importOperations('{"broken')).rejects.toMatchObject({
        code: 'INVALID_INPUT',
      })
    })
  })

  it(clause('O11', 'export to it'), async () => {
    const { dlq } = await aQueue()
    await dlq.importOperations(JSON.stringify([item]))
    const live = await dlq.enqueue({ type: 'tool_execution', payload: { a: 1 } }, refused())
    const out = JSON.parse(await dlq.exportOperations()) as (typeof item)[]
    const { error: _error, history: _history, ...same } = item
    expect(out.find(({ id }) => id === item.id)).toMatchObject({
      ...same,
      error: { message: 'Rate limit exceeded', code: '429' },
    })
    expect(out.find(({ id }) => id === live.id)).toMatchObject({
      status: 'queued',
      operation: { type: 'tool_execution', payload: { a: 1 } },
    })
  })

  it(
    clause('O11', "the error's name and the seed's 33 category names survive the import"),
    async () => {
      const { dlq } = await aQueue()
      expect(categoryNames).toHaveLength(33)
      const items = categoryNames.map((category, n) => ({
        ...item,
        id: `dlq_${n}`,
        error: { category, message: 'x', stack: `RateLimitError: x\n    at run (a.js:1:1)` },
      }))
      await dlq.importOperations(JSON.stringify(items))
      const out = JSON.parse(await dlq.exportOperations()) as (typeof item)[]
      const exported = new Map(out.map(({ id, error }) => [id, error.category]))
      const letters = (await dlq.find({ limit: 100 })).items
      expect(letters).toHaveLength(33)
      expect(letters.map(({ failure }) => failure.name)).toEqual(
        Array.from({ length: 33 }, () => 'RateLimitError'),
      )
      expect(new Set(letters.map(({ failure }) => failure.detail))).toEqual(new Set(categoryNames))
      expect(items.map(({ id }) => exported.get(id))).toEqual(categoryNames)
      const categoryOf = new Map(letters.map(({ failure, category }) => [failure.detail, category]))
      expect(Object.fromEntries(categoryOf)).toMatchObject({
        llm_rate_limit: 'rate-limit',
        github_rate_limit: 'rate-limit',
        llm_timeout: 'timeout',
        skill_timeout: 'timeout',
        network_error: 'network',
        dns_error: 'network',
        file_permission: 'permission',
        github_forbidden: 'permission',
        github_validation: 'validation',
        llm_server_error: 'dependency',
        system_error: 'unknown',
      })
    },
  )

  it(clause('O11', 'the group equals that of a live capture'), async () => {
    const { dlq } = await aQueue()
    const stack = 'RateLimitError: Rate limit exceeded\n    at call (file:///app/llm.js:3:9)'
    const imported = { ...item, error: { ...item.error, stack } }
    await dlq.importOperations(JSON.stringify([imported]))
    const live = Object.assign(new Error('Rate limit exceeded'), {
      name: 'RateLimitError',
      code: '429',
      stack,
    })
    await dlq.enqueue({ type: 'llm_call', payload: { prompt: 'other' } }, live)
    const { items } = await dlq.groups()
    expect(items).toMatchObject([{ queue: 'llm_call', count: 2 }])
  })
})

describe(row('W7'), () => {
  it(clause('W7', 'lifetime totals that survive restarts'), async () => {
    const first = await DeadLetterQueue.open(url)
    const { id } = await first.enqueue({ type: 'a' }, refused())
    await first.resolve(id)
    await first.remove(id)
    await first.close()
    await using second = await DeadLetterQueue.open(url)
    expect((await second.stats()).lifetime).toMatchObject({ captured: 1, resolved: 1, removed: 1 })
    expect((await second.stats()).size).toBe(0)
  })
})
