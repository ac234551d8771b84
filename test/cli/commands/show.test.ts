import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../../src/letter/payload.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, expectEscaped, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()
const at = '2026-01-01T00:00:00.000Z'
const cause = {
  name: 'SystemError',
  message: 'connect ECONNREFUSED',
  code: 'ECONNREFUSED',
  causes: [],
  at,
}

const rich = aLetter({
  queue: 'charge-card',
  state: 'parked',
  reason: 'operator',
  review: { neededSince: at, note: 'ask finance' },
  payload: encodePayload({ order: 42, note: hostileText }),
  failure: {
    name: 'HttpError',
    message: 'payments: 503',
    status: 503,
    retryAfterMs: 3000,
    detail: 'llm_server_error',
    hint: 'ask the provider',
    stack: 'HttpError: payments: 503\n    at charge (pay.ts:3:7)',
    causes: [cause],
    at,
  },
  app: { name: 'shop', version: '1.4.0', host: 'web-1', pid: 4711 },
  tags: ['eu'],
  metadata: { shop: 'berlin' },
  history: [
    { at, actor: 'capture', action: 'capture', from: null, to: 'pending' },
    { at, actor: hostileText, action: 'park', from: 'pending', to: 'parked', note: 'ask finance' },
  ],
  historyOmitted: 7,
})
const other = aLetter({
  payload: encodePayload(new Uint8Array([0, 255, 65])),
  source: { kind: 'workflow', name: 'nightly', taskId: 'wf_abc123', targets: [] },
})
const url = await aStoreFile(folder, [rich, other])
const show = (...args: string[]) => redrive(['show', '--store', url, ...args])

describe('show', () => {
  it('prints the letter, its failure with stack and causes, its payload and its timeline', async () => {
    const { out, err, exit } = await show(rich.id)
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expectEscaped(out)
    for (const part of [
      `${rich.id}  parked (operator)`,
      'queue      charge-card',
      '(llm_server_error), severity',
      'hint       ask the provider',
      'app        shop 1.4.0 on web-1, process 4711',
      'tags       eu',
      'metadata   {"shop":"berlin"}',
      'review     needed since 2026-01-01T00:00:00.000Z: ask finance',
      '  HttpError: payments: 503 (status 503, retry after 3 s)\n      at charge (pay.ts:3:7)',
      '  caused by SystemError: connect ECONNREFUSED (code ECONNREFUSED)',
      '    "order": 42,',
      'capture    pending',
      '  … 7 more',
      '      ask finance',
    ])
      expect(out).toContain(part)
  })

  it('accepts a source id', async () => {
    expect((await show('wf_abc123')).out).toContain(other.id)
  })

  it('prints binary payloads as hex', async () => {
    expect((await show(other.id)).out).toContain('00000000  00 ff 41')
  })

  it('accepts an id prefix, and rejects an ambiguous one', async () => {
    const { err, exit } = await show(rich.id.slice(0, 13))
    expect(err).toMatch(
      /^INVALID_INPUT: "[0-9a-f-]{13}" is a prefix of several ids, give more characters: /,
    )
    expect(err).toContain(other.id)
    expect(exit).toBe(2)
    const enough =
      Array.from(rich.id).findIndex((character, index) => character !== other.id[index]) + 1
    expect((await show(rich.id.slice(0, enough).toUpperCase())).out).toContain(rich.id)
  })

  it.each([
    ['0', 'INVALID_INPUT: "0" is too short', 2],
    ['wf_nowhere', 'LETTER_NOT_FOUND: no letter has the id or source id "wf_nowhere"', 4],
    [
      '01995c3a-0000-7000-8000-000000000000',
      'LETTER_NOT_FOUND: no letter has the id or source id "01995c3a-0000',
      4,
    ],
  ])('rejects %s', async (given, message, exit) => {
    const ran = await show(given)
    expect(ran.err).toContain(message)
    expect(ran.exit).toBe(exit)
  })

  it('prints the whole letter as JSON, with its bytes in base64', async () => {
    const { out } = await show('--json', other.id, rich.id)
    const [first, second] = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { payload: { base64: string }; history: object[] })
    expect(first!.payload.base64).toBe('AP9B')
    expect(second!.history).toHaveLength(2)
  })

  it('truncates a payload at --max-payload', async () => {
    expect((await show(rich.id, '--max-payload', '10')).out).toContain('… [cut, ')
  })
})

describe('show with encryption', () => {
  it('decrypts with the keys of the environment, and says which key is missing', async () => {
    const file = `sqlite:${folder}/encrypted.db`
    const key = Buffer.alloc(32, 5).toString('base64')
    const { DeadLetterQueue } = await import('../../../src/queue/queue.ts')
    const encryption = { keys: { k1: key }, current: 'k1' }
    const dlq = await DeadLetterQueue.open(file, { encryption })
    const { id } = await dlq.enqueue({ type: 'pay', payload: { iban: 'DE02' } }, new Error('no'))
    await dlq.close()
    const run = (args: string[], env: NodeJS.ProcessEnv = {}) =>
      redrive([...args, '--store', file], { env, cwd: folder })
    const env = {
      REDRIVE_ENCRYPTION__CURRENT: 'k1',
      REDRIVE_ENCRYPTION__KEYS: '{ k1: { env: PAY_KEY } }',
    }
    expect((await run(['show', id], { ...env, PAY_KEY: key })).out).toContain('DE02')
    const other = Buffer.alloc(32, 6).toString('base64')
    const wrong = await run(['show', id], { ...env, PAY_KEY: other })
    expect(wrong.out).toContain('key k1 is not the key that it was encrypted with')
    expect(wrong.out).not.toContain('DE02')
    expect((await run(['show', id])).out).not.toContain('DE02')
    expect(await run(['list'], env)).toMatchObject({
      exit: 2,
      err: expect.stringContaining('PAY_KEY is not set or empty') as string,
    })
    expect(await run(['list'], { ...env, PAY_KEY: 'short' })).toMatchObject({
      exit: 2,
      err: expect.stringContaining('must be 32 bytes') as string,
    })
  })
})
