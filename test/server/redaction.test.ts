import { describe, expect, it } from 'vitest'
import { createClient, ProblemError, type Client } from '../../src/api/client.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { readAll, withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer
withServerInEachTest((started) => (server = started), {
  redact: { paths: ['payload.name', 'payload.list.0', 'metadata.name'], patterns: ['cust-\\d+'] },
  queues: { open: { redact: { detectors: [] } }, stored: { redact: { atCapture: true } } },
})

async function aLetter(type = 'mail'): Promise<DeadLetter> {
  return server.dlq.enqueue(
    { type, payload: { name: 'mia', to: 'mia@example.com', list: ['one', 'two'], n: 1 } },
    new Error('no mailbox for mia@example.com of cust-77'),
    { metadata: { name: 'mia', n: 1 }, headers: { authorization: 'x' }, tags: ['cust-77'] },
  )
}

async function problemOf(call: Promise<unknown>): Promise<{ code: string; detail?: string }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(ProblemError)
  return (error as ProblemError).problem
}

const operator = (): Promise<Client> => server.client({ name: 'otto', role: 'operator' })
const admin = (): Promise<Client> => server.client({ name: 'mia', role: 'admin' })

describe('redaction at read', () => {
  it('hides values from an operator, and from an admin who does not ask', async () => {
    const { id } = await aLetter()
    for (const client of [await operator(), await admin()]) {
      const letter = await client.getLetter({ id })
      expect(letter.payload.json).toEqual({
        name: '[redacted]',
        to: '[redacted]',
        list: ['[redacted]', 'two'],
        n: 1,
      })
      expect(letter.payload.redacted).toBe(true)
      expect(letter.failure.message).toBe('no mailbox for [redacted] of [redacted]')
      expect(letter.headers).toEqual({ authorization: '[redacted]' })
      expect(letter.metadata).toEqual({ name: '[redacted]', n: 1 })
      expect(JSON.stringify([letter, await client.listLetters({})])).not.toMatch(
        /mia@example|cust-77/,
      )
    }
  })

  it('reveals them to an admin who asks, with an entry in the audit log', async () => {
    const { id } = await aLetter()
    const client = await admin()
    const letter = await client.getLetter({ id, reveal: true })
    expect(letter.payload.json).toMatchObject({ name: 'mia', to: 'mia@example.com' })
    const [version] = await client.getPayloads({ id, reveal: true })
    expect(version?.json).toMatchObject({ name: 'mia' })
    const { items } = await client.listAudit({ action: 'reveal' })
    expect(items.map(({ actor, outcome, what }) => [actor, outcome, what.id])).toEqual([
      ['mia', 'done', id],
      ['mia', 'started', id],
      ['mia', 'done', id],
      ['mia', 'started', id],
    ])
  })

  it('refuses to reveal to an operator', async () => {
    const { id } = await aLetter()
    const client = await operator()
    for (const call of [
      () => client.getLetter({ id, reveal: true }),
      () => client.getPayloads({ id, reveal: true }),
      () => client.diffPayloads({ id, reveal: true }),
      () => readAll(client.exportLetters({ reveal: true })),
    ])
      expect(await problemOf(call())).toMatchObject({ code: 'FORBIDDEN' })
  })

  it('hides values in versions, differences and previews', async () => {
    const { id } = await aLetter()
    const edited = { name: 'bob', to: 'b@example.com', n: 2 }
    await server.dlq.edit(id, { payload: edited, reason: 'typo', by: 'mia' })
    const client = await operator()
    const diff = await client.diffPayloads({ id })
    const plan = await client.planBulkAction({
      action: 'edit',
      filter: { queue: 'mail' },
      patch: [{ op: 'add', path: '/name', value: 'carl' }],
      reason: 'fix',
    })
    expect(plan.preview?.[0]?.diff).toMatchObject({
      changes: [{ path: '/name', before: '[redacted]', after: '[redacted]' }],
    })
    const shown = JSON.stringify([diff, await client.getPayloads({ id }), plan])
    expect(shown).not.toMatch(/mia@|bob|b@example|carl/)
    expect(diff).toMatchObject({ kind: 'json', changes: [{ path: '/list' }, { path: '/n' }] })
  })

  it('exports redacted letters that cannot run after an import', async () => {
    const { id } = await aLetter()
    const response = await fetch(`${server.url}/api/export`, {
      headers: { authorization: `Bearer ${await server.token({ role: 'operator' })}` },
    })
    const lines = await response.text()
    expect(lines).not.toMatch(/mia@|cust-77/)
    await server.dlq.remove(id, 'mia')
    const report = await server.dlq.importLetters([Buffer.from(lines)])
    expect(report.added).toBe(1)
    await expect(server.dlq.retry(id, 'mia')).rejects.toMatchObject({ code: 'CONTENT_MISSING' })
  })
})

describe('probing', () => {
  it('is refused in filters, and allowed for values that are shown', async () => {
    await aLetter()
    const client = await operator()
    for (const filter of [
      { text: 'mia' },
      { metadata: { name: 'mia' } },
      { tag: 'cust-77' },
      { lane: 'mia@example.com' },
      { sourceId: 'cust-77' },
    ])
      expect(await problemOf(client.listLetters(filter)), JSON.stringify(filter)).toMatchObject({
        code: 'FORBIDDEN',
      })
    expect((await client.listLetters({ metadata: { n: 1 } })).items).toHaveLength(1)
    const plan = { action: 'retry', filter: { text: 'mia' } } as const
    expect(await problemOf(client.planBulkAction(plan))).toMatchObject({ code: 'FORBIDDEN' })
    expect((await (await admin()).listLetters({ text: 'mia' })).items).toHaveLength(1)
  })

  it('by text is allowed where the stored text is redacted', async () => {
    await aLetter('stored')
    const client = await operator()
    expect((await client.listLetters({ queue: 'stored', text: 'mailbox' })).items).toHaveLength(1)
    expect((await client.listLetters({ queue: 'stored', text: 'mia' })).items).toHaveLength(0)
  })

  it.each([
    [[{ op: 'test', path: '/name', value: 'mia' }]],
    [[{ op: 'test', path: '/name', value: 'bob' }]],
    [[{ op: 'test', path: '', value: {} }]],
    [[{ op: 'test', path: '/name/x', value: 1 }]],
    [[{ op: 'test', path: '/to', value: 'mia@example.com' }]],
    [[{ op: 'copy', from: '/name', path: '/n' }]],
    [[{ op: 'move', from: '/name', path: '/shown' }]],
    [[{ op: 'add', path: '/list/0', value: 'x' }]],
    [
      [
        { op: 'add', path: '/list/0', value: 'x' },
        { op: 'test', path: '/list/1', value: 'one' },
      ],
    ],
  ])('is refused in the patch %j', async (patch) => {
    const { id } = await aLetter()
    const call = (await operator()).editLetter({ id, patch, reason: 'probe' })
    expect(await problemOf(call)).toMatchObject({ code: 'FORBIDDEN' })
  })

  it('is not seen in patches of what is shown', async () => {
    const { id } = await aLetter()
    const client = await operator()
    const patch = [
      { op: 'test', path: '/n', value: 1 },
      { op: 'replace', path: '/n', value: 2 },
      { op: 'replace', path: '/name', value: 'bob' },
    ]
    await client.editLetter({ id, patch, reason: 'fix' })
    expect(JSON.parse(Buffer.from((await server.dlq.get(id))!.payload.bytes).toString())).toEqual({
      name: 'bob',
      to: 'mia@example.com',
      list: ['one', 'two'],
      n: 2,
    })
  })

  it('is refused in patches of bulk edits', async () => {
    await aLetter()
    const call = (await operator()).planBulkAction({
      action: 'edit',
      filter: { queue: 'mail' },
      patch: [{ op: 'test', path: '/name', value: 'mia' }],
      reason: 'probe',
    })
    expect(await problemOf(call)).toMatchObject({ code: 'FORBIDDEN' })
  })
})

describe('an edit', () => {
  it('rejects a payload with the mark', async () => {
    const { id } = await aLetter()
    const client = await operator()
    const { payload } = await client.getLetter({ id })
    const problem = await problemOf(client.editLetter({ id, json: payload.json!, reason: 'x' }))
    expect(problem.code).toBe('INVALID_INPUT')
    expect(problem.detail).toContain('`payload` contains [redacted]')
  })

  it('accepts it in a queue without redaction', async () => {
    const plain = await server.dlq.enqueue({ type: 'open', payload: { n: 1 } }, new Error('x'))
    expect(plain.payload.redacted).toBeUndefined()
    const client = createClient({ url: server.url, token: await server.token() })
    expect((await client.getLetter({ id: plain.id })).payload.json).toEqual({ n: 1 })
  })
})
