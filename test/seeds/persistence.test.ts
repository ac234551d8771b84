import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../src/queue.ts'
import { aQueue, refused } from '../a-queue.ts'
import { quote } from './rows.ts'

let folder: string
let url: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-persist-'))
  url = `sqlite:${join(folder, 'letters.db')}`
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the capturing process until it has said so many ids, then kills it if told to. Answers what it said. */
async function capturing(options: {
  count?: number
  killAfter?: number
}): Promise<Map<string, string>> {
  const args = [join(import.meta.dirname, 'capture-forever.ts'), url, String(options.count ?? 0)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const said = new Map<string, string>()
  for await (const line of createInterface({ input: child.stdout })) {
    const space = line.indexOf(' ')
    said.set(line.slice(0, space), line.slice(space + 1))
    if (said.size === options.killAfter) child.kill('SIGKILL')
  }
  await ended
  return said
}

async function mustHold(said: Map<string, string>): Promise<number> {
  await using dlq = await DeadLetterQueue.open(url)
  for (const [id, payload] of said) {
    const letter = await dlq.get(id)
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe(payload)
  }
  return (await dlq.stats()).size
}

describe(quote('O5'), () => {
  it('what was acknowledged is there after kill -9', async () => {
    const said = new Map<string, string>()
    for (const killAfter of [1, 50, 333])
      for (const [id, payload] of await capturing({ killAfter })) said.set(id, payload)
    expect(said.size).toBeGreaterThanOrEqual(384)
    expect(await mustHold(said)).toBeGreaterThanOrEqual(said.size)
  })

  it('a file that is no store is refused and left as it is', async () => {
    const garbage = Buffer.from('[{"id":"dlq_1","status":"queued"')
    writeFileSync(url.slice('sqlite:'.length), garbage)
    await expect(DeadLetterQueue.open(url)).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
    expect(readFileSync(url.slice('sqlite:'.length))).toEqual(garbage)
  })

  it('two processes on one file keep what both captured', async () => {
    const both = await Promise.all([capturing({ count: 200 }), capturing({ count: 200 })])
    const said = new Map(both.flatMap((one) => [...one]))
    expect(await mustHold(said)).toBe(said.size)
  })

  it('goes on after a restart with what was pending, and what was resolved stays so', async () => {
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

describe(quote('O11'), () => {
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

  it('takes in the file, once, and writes it back in the same shape', async () => {
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
    const [out] = JSON.parse(await dlq.exportOperations({ state: 'pending' })) as (typeof item)[]
    const { error: _error, history: _history, ...same } = item
    expect(out).toMatchObject({ ...same, error: { message: 'Rate limit exceeded', code: '429' } })
  })

  it('refuses a file that is not such a file', async () => {
    const { dlq } = await aQueue()
    await expect(dlq.importOperations('{"broken')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe(quote('W7'), () => {
  it('lifetime totals survive a restart', async () => {
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
