import assert from 'node:assert/strict'
import { toMs } from '../../letter/time.ts'
import { checkOn, needs } from './check.ts'
import {
  acknowledgeAll,
  ids,
  lapseMs,
  longSeconds,
  nothing,
  rejectsWith,
  sameBytes,
  sameSet,
  sendAll,
  take,
  takeOne,
  text,
  toleranceMs,
  values,
} from './stage.ts'

const check = checkOn('send')

const kibi = 1024

/** Bytes that no encoding of text would leave as they are. */
function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let at = 0; at < length; at++) bytes[at] = at * 167 + (at >> 8) * 31
  return bytes
}

export const sendChecks = [
  check('answers with the id of the message, which no other has', async (bench) => {
    const sent = await Promise.all(Array.from({ length: 20 }, (_, n) => bench.mailbox.send(n)))
    assert.equal(new Set(sent).size, 20)
    const taken = await take(bench, 20)
    sameSet(ids(taken), sent)
    for (const message of taken) assert.equal(sent[message.value() as number], message.id)
  }),

  check('takes an id that is given', async (bench) => {
    for (const id of ['order-7', 'ünï/cödé:{1} $%', 'x'.repeat(200)]) {
      assert.equal(await bench.mailbox.send(id, { id }), id)
      const message = await takeOne(bench)
      assert.equal(message.id, id)
      await message.acknowledge()
    }
  }),

  check(
    'adds nothing when the id was sent before, whether the message waits or is out',
    async (bench) => {
      const { mailbox } = bench
      await mailbox.send('first', { id: 'same' })
      assert.equal(await mailbox.send('second', { id: 'same' }), 'same')
      const message = await takeOne(bench)
      assert.equal(message.value(), 'first')
      assert.equal(await mailbox.send('third', { id: 'same' }), 'same')
      await nothing(mailbox)
      await message.acknowledge()
      await nothing(mailbox)
    },
    needs('deduplicates'),
  ),

  check('brings bytes as they were, with their content type', async (bench) => {
    const { maxBodyBytes } = bench.mailbox.powers
    const bodies: [what: string, bytes: Uint8Array, contentType?: string][] = [
      ['no bytes at all', new Uint8Array()],
      ['no text at all', new Uint8Array(), 'text/plain'],
      ['every byte', Uint8Array.from({ length: 256 }, (_, at) => at)],
      ['zeros', new Uint8Array(100), 'application/x-zeros'],
      ['text with a zero in it', Buffer.from('a\0b'), 'text/plain; charset=utf-8'],
      ['what is no UTF-8', Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80), 'text/plain'],
      ['a byte order mark', Uint8Array.of(0xef, 0xbb, 0xbf, 0x61), 'text/csv'],
      [
        'JSON with its spaces',
        Buffer.from('{ "a" : 1.0 }\r\n'),
        'application/vnd.acme+json; v="2"',
      ],
      ['many bytes', noise(Math.min(256 * kibi, maxBodyBytes))],
    ]
    for (const [what, bytes, contentType] of bodies) {
      const sent = Uint8Array.from(bytes)
      await bench.mailbox.send(sent, contentType === undefined ? {} : { contentType })
      sent.fill(7) // What the sender does to it afterwards is nobody's business.
      const message = await takeOne(bench)
      sameBytes(message.body.bytes, bytes, what)
      assert.equal(message.body.size, bytes.byteLength, what)
      assert.equal(message.body.contentType, contentType ?? 'application/octet-stream', what)
      await message.acknowledge()
    }
  }),

  check('brings values as they were, also those that JSON has no word for', async (bench) => {
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
    const taken = await take(bench, bodies.length)
    assert.equal(taken.length, bodies.length)
    if (bench.mailbox.powers.ordered) assert.deepEqual(values(taken), bodies)
    else for (const body of bodies) assert.ok(values(taken).some((value) => same(value, body)))
  }),

  check('gives a new value each time it is asked', async (bench) => {
    await bench.mailbox.send({ list: [1] })
    const message = await takeOne(bench)
    const first = message.value() as { list: number[] }
    first.list.push(2)
    assert.deepEqual(message.value(), { list: [1] })
  }),

  check('delivers text as text of its type', async (bench) => {
    await bench.mailbox.send('<a>ü</a>', { contentType: 'application/xml' })
    const message = await takeOne(bench)
    assert.equal(message.value(), '<a>ü</a>')
    assert.equal(message.body.contentType, 'application/xml')
    sameBytes(message.body.bytes, Buffer.from('<a>ü</a>'), 'text')
  }),

  check('brings headers as they were: odd names, any letters, many', async (bench) => {
    const odd = {
      plain: 'value',
      Plain: 'another, by its case',
      empty: '',
      ünï: 'Zürich 東京 💌',
      'with space: and colon': ' spaces around ',
      'a.b/c$d': '{"json":"in it"}',
      number: '007',
      long: 'x'.repeat(2000),
      constructor: 'a name that objects have',
    }
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`h${n}`, `v${n}`]))
    for (const headers of [odd, many, {}]) {
      await bench.mailbox.send('body', { headers })
      const message = await takeOne(bench)
      assert.deepEqual({ ...message.headers }, headers)
      await message.acknowledge()
    }
  }),

  check('refuses what no wire could carry, and sends nothing', async ({ mailbox }) => {
    const hundred = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`h${n}`, '']))
    const refused = {
      'an id of no characters': { id: '' },
      'an id of too many': { id: 'x'.repeat(201) },
      'an id with a line feed': { id: 'a\nb' },
      'a reply to no name': { replyTo: '' },
      'a reply to a name with a control character': { replyTo: 'a\u0007' },
      'a content type over two lines': { contentType: 'text/plain\r\nx: y' },
      'a header without a name': { headers: { '': 'x' } },
      'a header over two lines': { headers: { a: 'x\r\ny: z' } },
      'a header that is no text': { headers: { a: 5 as unknown as string } },
      'a header with half a character': { headers: { a: '\ud800' } },
      'a header that is too long': { headers: { a: 'x'.repeat(8193) } },
      'too many headers': { headers: hundred },
      'a delay below zero': { delaySeconds: -1 },
      'a delay over twelve hours': { delaySeconds: 43_201 },
      'a delay that is no number': { delaySeconds: Number.NaN },
      'a delay as text': { delaySeconds: text('5') },
    }
    for (const [what, options] of Object.entries(refused))
      await rejectsWith('INVALID_INPUT', () => mailbox.send(Buffer.from('x'), options), what)
    await nothing(mailbox)
  }),

  check('refuses a body over the limit, and sends nothing', async ({ mailbox }) => {
    const { maxBodyBytes } = mailbox.powers
    if (maxBodyBytes > 16 * kibi ** 2) return // More than a check may ask of a broker.
    const body = new Uint8Array(maxBodyBytes + 1)
    await rejectsWith('TOO_LARGE', () => mailbox.send(body))
    await nothing(mailbox)
  }),

  check('takes a body at the limit', async (bench) => {
    const { maxBodyBytes } = bench.mailbox.powers
    if (maxBodyBytes > 16 * kibi ** 2) return // More than a check may ask of a broker.
    const bytes = noise(maxBodyBytes)
    await bench.mailbox.send(bytes)
    const message = await takeOne(bench)
    sameBytes(message.body.bytes, bytes, 'the largest body')
    await message.acknowledge()
  }),

  check('dates a message by when it was sent and when it came', async (bench) => {
    const sentMs = bench.now()
    await bench.mailbox.send('dated')
    const message = await takeOne(bench)
    const near = (at: string, ms: number): void =>
      assert.ok(
        Math.abs(toMs(at) - ms) < toleranceMs,
        `${at} is near ${new Date(ms).toISOString()}`,
      )
    near(message.enqueuedAt, sentMs)
    near(message.firstReceivedAt, bench.now())
    near(message.visibleAt, bench.now() + longSeconds * 1000)
  }),

  check(
    'delivers a delayed message when its time has come, not before',
    async (bench) => {
      await bench.mailbox.send('later', { delaySeconds: 1 })
      await bench.mailbox.send('now')
      assert.deepEqual(values(await take(bench, 1)), ['now'])
      await nothing(bench.mailbox, 'not before its time')
      await bench.advance(lapseMs)
      const later = await takeOne(bench)
      assert.equal(later.value(), 'later')
      assert.equal(later.deliveries, 1)
    },
    needs('delay'),
  ),

  check('refuses a delay where the broker has none', async ({ mailbox }) => {
    if (mailbox.powers.delay) return
    await rejectsWith('INVALID_INPUT', () => mailbox.send('x', { delaySeconds: 1 }))
    await nothing(mailbox)
  }),

  check('delivers a body that nobody can decode, beside others that are fine', async (bench) => {
    const { mailbox } = bench
    const secret = Buffer.from('{"secret": hunter2')
    await mailbox.send({ good: 1 })
    const bad = await mailbox.send(secret, { contentType: 'application/json' })
    await mailbox.send({ good: 2 })
    const taken = await take(bench, 3)
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
      sameBytes(message.body.bytes, secret, 'the bytes that nobody can decode')
      assert.equal(message.body.contentType, 'application/json')
    }
    await acknowledgeAll(taken)
  }),
]

function same(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b)
    return true
  } catch {
    return false
  }
}
