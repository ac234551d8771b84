import assert from 'node:assert/strict'
import { toMs } from '../../letter/time.ts'
import { checkOn, needs } from './check.ts'
import {
  acknowledgeAll,
  ids,
  lapseMs,
  longSeconds,
  expectEmpty,
  expectRejection,
  expectSameBytes,
  expectSameSet,
  sendAll,
  receiveMany,
  receiveOne,
  asNumber,
  toleranceMs,
  values,
} from './steps.ts'

const check = checkOn('send')

const kibi = 1024

/** Bytes that every text encoding would change. */
function binaryBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let at = 0; at < length; at++) bytes[at] = at * 167 + (at >> 8) * 31
  return bytes
}

export const sendChecks = [
  check('returns a unique message id', async (bench) => {
    const sent = await Promise.all(Array.from({ length: 20 }, (_, n) => bench.mailbox.send(n)))
    assert.equal(new Set(sent).size, 20)
    const taken = await receiveMany(bench, 20)
    expectSameSet(ids(taken), sent)
    for (const message of taken) assert.equal(sent[message.value() as number], message.id)
  }),

  check('uses the given id', async (bench) => {
    for (const id of ['order-7', 'ünï/cödé:{1} $%', 'x'.repeat(200)]) {
      assert.equal(await bench.mailbox.send(id, { id }), id)
      const message = await receiveOne(bench)
      assert.equal(message.id, id)
      await message.acknowledge()
    }
  }),

  check(
    'ignores a second send of an id while the message is waiting or in flight',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('first', { id: 'same' })
      assert.equal(await mailbox.send('second', { id: 'same' }), 'same')
      const message = await receiveOne(bench)
      assert.equal(message.value(), 'first')
      assert.equal(await mailbox.send('third', { id: 'same' }), 'same')
      await expectEmpty(mailbox)
      await message.acknowledge()
      await expectEmpty(mailbox)
    },
    needs('deduplicates'),
  ),

  check('delivers bytes unchanged, with their content type', async (bench) => {
    const { maxBodyBytes } = bench.mailbox.powers
    const bodies: [what: string, bytes: Uint8Array, contentType?: string][] = [
      ['no bytes', new Uint8Array()],
      ['an empty string', new Uint8Array(), 'text/plain'],
      ['every byte value', Uint8Array.from({ length: 256 }, (_, at) => at)],
      ['zeros', new Uint8Array(100), 'application/x-zeros'],
      ['a string with a NUL', Buffer.from('a\0b'), 'text/plain; charset=utf-8'],
      ['invalid UTF-8', Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80), 'text/plain'],
      ['a byte order mark', Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), 'text/csv'],
      [
        'JSON with whitespace',
        Buffer.from('{ "a" : 1.0 }\r\n'),
        'application/vnd.acme+json; v="2"',
      ],
      ['many bytes', binaryBytes(Math.min(256 * kibi, maxBodyBytes))],
    ]
    for (const [what, bytes, contentType] of bodies) {
      const sent = Uint8Array.from(bytes)
      await bench.mailbox.send(sent, contentType === undefined ? {} : { contentType })
      sent.fill(7) // Later changes by the sender must not matter.
      const message = await receiveOne(bench)
      expectSameBytes(message.body.bytes, bytes, what)
      assert.equal(message.body.size, bytes.byteLength, what)
      assert.equal(message.body.contentType, contentType ?? 'application/octet-stream', what)
      await message.acknowledge()
    }
  }),

  check('delivers values unchanged, including values that JSON cannot represent', async (bench) => {
    const bodies = [
      null,
      '',
      'x\u2028\u0000💌',
      0,
      -0,
      false,
      [],
      {},
      { deep: { list: [1, { two: 2 }] } },
      undefined,
      Number.NaN,
      2n ** 70n,
      new Date(Date.UTC(2026, 1, 3, 4, 5, 6, 7)),
      new Map<unknown, unknown>([
        ['a', 1n],
        [{ key: true }, new Set([1, 'two'])],
      ]),
      { at: new Date(0), of: [undefined, Infinity] },
    ]
    await sendAll(bench.mailbox, bodies)
    const taken = await receiveMany(bench, bodies.length)
    assert.equal(taken.length, bodies.length)
    if (bench.mailbox.powers.ordered) assert.deepEqual(values(taken), bodies)
    else for (const body of bodies) assert.ok(values(taken).some((value) => isEqual(value, body)))
  }),

  check('decodes a new value on each call of value()', async (bench) => {
    await bench.mailbox.send({ list: [1] })
    const message = await receiveOne(bench)
    const first = message.value() as { list: number[] }
    first.list.push(2)
    assert.deepEqual(message.value(), { list: [1] })
  }),

  check('delivers a string with its content type', async (bench) => {
    await bench.mailbox.send('<a>ü</a>', { contentType: 'application/xml' })
    const message = await receiveOne(bench)
    assert.equal(message.value(), '<a>ü</a>')
    assert.equal(message.body.contentType, 'application/xml')
    expectSameBytes(message.body.bytes, Buffer.from('<a>ü</a>'), 'the string')
  }),

  check(
    'delivers headers unchanged: unusual names, any characters, many headers',
    async (bench) => {
      const odd = {
        plain: 'value',
        Plain: 'differs only in case',
        empty: '',
        ünï: 'Zürich 東京 💌',
        'with space: and colon': ' spaces around ',
        'a.b/c$d': '{"json":"in it"}',
        number: '007',
        long: 'x'.repeat(2000),
        constructor: 'a property of every object',
      }
      const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`h${n}`, `v${n}`]))
      for (const headers of [odd, many, {}]) {
        await bench.mailbox.send('body', { headers })
        const message = await receiveOne(bench)
        assert.deepEqual({ ...message.headers }, headers)
        await message.acknowledge()
      }
    },
  ),

  check(
    'rejects invalid ids, names, headers and delays, and sends nothing',
    async ({ mailbox }) => {
      const tooMany = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`h${n}`, '']))
      const invalid = {
        'an empty id': { id: '' },
        'an id of 201 characters': { id: 'x'.repeat(201) },
        'an id with a line feed': { id: 'a\nb' },
        'an empty replyTo': { replyTo: '' },
        'a replyTo with a control character': { replyTo: 'a\u0007' },
        'a content type with a line break': { contentType: 'text/plain\r\nx: y' },
        'a header without a name': { headers: { '': 'x' } },
        'a header with a line break': { headers: { a: 'x\r\ny: z' } },
        'a header that is not a string': { headers: { a: 5 as unknown as string } },
        'a header with a lone surrogate': { headers: { a: '\ud800' } },
        'a header of 8193 characters': { headers: { a: 'x'.repeat(8193) } },
        '101 headers': { headers: tooMany },
        'a negative delay': { delaySeconds: -1 },
        'a delay above 12 hours': { delaySeconds: 43_201 },
        'a delay of NaN': { delaySeconds: Number.NaN },
        'a delay as a string': { delaySeconds: asNumber('5') },
      }
      for (const [what, options] of Object.entries(invalid))
        await expectRejection('INVALID_INPUT', () => mailbox.send(Buffer.from('x'), options), what)
      await expectEmpty(mailbox)
    },
  ),

  check('rejects a body above maxBodyBytes, and sends nothing', async ({ mailbox }) => {
    const { maxBodyBytes } = mailbox.powers
    if (maxBodyBytes > 16 * kibi ** 2) return // Too large for a check.
    const body = new Uint8Array(maxBodyBytes + 1)
    await expectRejection('TOO_LARGE', () => mailbox.send(body))
    await expectEmpty(mailbox)
  }),

  check('accepts a body of exactly maxBodyBytes', async (bench) => {
    const { maxBodyBytes } = bench.mailbox.powers
    if (maxBodyBytes > 16 * kibi ** 2) return // Too large for a check.
    const bytes = binaryBytes(maxBodyBytes)
    await bench.mailbox.send(bytes)
    const message = await receiveOne(bench)
    expectSameBytes(message.body.bytes, bytes, 'the largest body')
    await message.acknowledge()
  }),

  check('sets enqueuedAt, firstReceivedAt and visibleAt', async (bench) => {
    const sentMs = bench.now()
    await bench.mailbox.send('dated')
    const message = await receiveOne(bench)
    const expectNear = (at: string, ms: number): void =>
      assert.ok(
        Math.abs(toMs(at) - ms) < toleranceMs,
        `${at} is not near ${new Date(ms).toISOString()}`,
      )
    expectNear(message.enqueuedAt, sentMs)
    expectNear(message.firstReceivedAt, bench.now())
    expectNear(message.visibleAt, bench.now() + longSeconds * 1000)
  }),

  check(
    'delivers a delayed message when it is due, not before',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('much later', { delaySeconds: 600 })
      await mailbox.send('now')
      assert.deepEqual(values(await receiveMany(bench, 1)), ['now'])
      await mailbox.send('later', { delaySeconds: 1 })
      if (bench.hasFakeTime) await expectEmpty(mailbox, 'before the delay is over')
      await bench.advance(lapseMs)
      const later = await receiveOne(bench)
      assert.equal(later.value(), 'later')
      assert.equal(later.deliveries, 1)
      await expectEmpty(mailbox, 'before the longer delay is over')
    },
    needs('delay'),
  ),

  check('rejects a delay if the broker does not support delays', async ({ mailbox }) => {
    if (mailbox.powers.delay) return
    await expectRejection('INVALID_INPUT', () => mailbox.send('x', { delaySeconds: 1 }))
    await expectEmpty(mailbox)
  }),

  check('delivers an undecodable body together with valid ones', async (bench) => {
    const { mailbox } = bench
    const secret = Buffer.from('{"secret": hunter2')
    await mailbox.send({ good: 1 })
    const bad = await mailbox.send(secret, { contentType: 'application/json' })
    await mailbox.send({ good: 2 })
    const taken = await receiveMany(bench, 3)
    assert.equal(taken.length, 3)
    for (const message of taken) {
      if (message.id !== bad) {
        assert.ok((message.value() as { good: number }).good > 0)
        continue
      }
      const undecodable = (error: unknown): boolean => {
        const { code, message } = error as { code?: unknown; message: string }
        return code === 'UNDECODABLE' && !message.includes('hunter2')
      }
      assert.throws(() => message.value(), undecodable)
      expectSameBytes(message.body.bytes, secret, 'the undecodable body')
      assert.equal(message.body.contentType, 'application/json')
    }
    await acknowledgeAll(taken)
  }),
]

function isEqual(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b)
    return true
  } catch {
    return false
  }
}
