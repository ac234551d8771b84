import { Admin, Producer } from '@platformatic/kafka'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { Cluster } from '../../src/backends/kafka/cluster.ts'
import { Fetcher } from '../../src/backends/kafka/fetcher.ts'
import { partitionForKey } from '../../src/backends/kafka/sender.ts'
import type { StoredRecord } from '../../src/backends/kafka/record.ts'
import { kafkaTap, type KafkaTapOptions } from '../../src/taps/kafka.ts'
import { returnToSource } from '../../src/taps/return-to-source.ts'
import type { ForeignLetter, Keep, Tap } from '../../src/taps/tap.ts'
import { aFolder } from '../folders.ts'
import { kafkaPlace, makeTopics } from '../servers/broker-places.ts'
import type { Place } from '../servers/places.ts'
import { backend, freshName } from '../servers/servers.ts'
import { inbox } from './inbox.ts'
import { openLetters } from './letters.ts'
import { endsWhileItStarts } from './ends-while-it-starts.ts'
import { connectHeaders, retryableHeaders, springHeaders } from './kafka-headers.ts'
import { hostileNames } from '../bad-input/hostile-names.ts'

const { url, missing } = backend('kafka')
const folder = aFolder('tap')

const pairsOf = (all: ReturnType<typeof retryableHeaders>): [Buffer, Buffer | null][] =>
  all.map(([name, value]) => [Buffer.from(name), value])

describe.skipIf(missing)('kafkaTap', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let producer: Producer
  const taps: Tap[] = []
  const dlt = (): string => `${place.name}.orders.DLT`
  const orders = (): string => `${place.name}.orders`

  beforeEach(async () => {
    place = kafkaPlace(url)
    const settings = { clientId: place.name, bootstrapBrokers: [url] }
    admin = new Admin(settings)
    producer = new Producer(settings)
    await makeTopics(admin, [dlt(), orders()], 2)
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    await Promise.all([admin.close(), producer.close()])
    await place.clear()
  })

  const started = async (keep: Keep, more: Partial<KafkaTapOptions> = {}): Promise<Tap> => {
    const groupId = `${place.name}.tap`
    const tap = kafkaTap({ url, topics: [dlt()], groupId, keep, sessionMs: 1000, ...more })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const dies = async (
    body: string | null,
    headers: Record<string, Buffer>,
    topic = dlt(),
    key: string | null = 'key',
  ): Promise<void> => {
    const named = new Map(
      Object.entries(headers).map(([name, value]) => [Buffer.from(name), value]),
    )
    const value = body === null ? (null as unknown as Buffer) : Buffer.from(body)
    const keyed = key === null ? {} : { key: Buffer.from(key) }
    const message = { topic, ...keyed, value, headers: named }
    await producer.send({ messages: [{ ...message, partition: 0 }] })
  }

  /** The records of a partition. */
  const read = async (topic: string, partition: number): Promise<StoredRecord[]> => {
    const cluster = new Cluster({ url, clock: systemClock, timeoutMs: 5000, clientId: place.name })
    const reader = new Fetcher(cluster)
    try {
      return (await reader.read({ topic, partition }, 0)).records
    } finally {
      await reader.close()
    }
  }

  const committed = async (): Promise<number[]> => {
    const [group] = await admin.listConsumerGroupOffsets({ groups: [`${place.name}.tap`] })
    const partitions = group?.topics[0]?.partitions ?? []
    return partitions.map(({ committedOffset }) => Number(committedOffset))
  }

  it('stores dead records of Spring Kafka and Kafka Connect', async () => {
    const kept = inbox<ForeignLetter>()
    await started(async (letter) => kept.put(letter))
    await dies('one', springHeaders(orders()))
    await dies('two', connectHeaders(orders()))
    const one = await kept.next()
    expect(Buffer.from(one.body).toString()).toBe('one')
    expect(one).toMatchObject({ source: orders(), messageId: `${dlt()}:0:0`, deliveries: 3 })
    const two = await kept.next()
    expect(two.reason).toContain('DataException: cannot convert')
    await expect.poll(committed).toContain(2)
  })

  it('continues to read when some letters cannot be stored', async () => {
    const kept = inbox<string>()
    for (let n = 0; n < 30; n++) await dies('bad', {})
    await dies('good', {})
    await started(async ({ body }) => {
      const text = Buffer.from(body).toString()
      if (text === 'bad') throw new Error('too large')
      kept.put(text)
    })
    expect(await kept.next()).toBe('good')
    await dies('another', {})
    expect(await kept.next()).toBe('another')
  })

  it('returns a record to its original topic, partition and key', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (letter) => kept.put(letter))
    await dies('one', springHeaders(orders(), 1))
    await tap.returnToSource(await kept.next(), 1)
    const [home] = await read(orders(), 1)
    expect([home?.key?.toString(), home?.value.toString()]).toEqual(['key', 'one'])
    const headers = Object.fromEntries(
      home!.headers.map(([name, text]) => [String(name), String(text)]),
    )
    expect(headers).toEqual({
      'content-type': 'application/json',
      trace: 'abc',
      'redrive-replays': '1',
      'redrive-original-id': `${dlt()}:0:0`,
    })
  })

  it('returns a record to the partition of its key, and without a key to its original partition', async () => {
    const wide = `${place.name}.wide`
    await makeTopics(admin, [wide], 5)
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (letter) => kept.put(letter))
    const of = async (key: string | null, partition: number): Promise<void> => {
      await dies(`${key} of ${partition}`, springHeaders(wide, partition), dlt(), key)
      await tap.returnToSource(await kept.next(), 1)
    }
    const bodies = async (partition: number): Promise<string[]> =>
      (await read(wide, partition)).map(({ value }) => value.toString())
    // The hash by Java is -1323649548, without its sign 823834100.
    await of('abcd', 3)
    expect(await bodies(partitionForKey(Buffer.from('abcd'), 5))).toEqual(['abcd of 3'])
    await of(null, 3)
    expect(await bodies(3)).toEqual(['null of 3'])
    // That partition does not exist.
    await of(null, 12)
    const all = (await Promise.all([0, 1, 2, 3, 4].map(bodies))).flat()
    expect(all.toSorted()).toEqual(['abcd of 3', 'null of 12', 'null of 3'])
  })

  it('returns repeated headers, null headers and headers named like object properties', async () => {
    await using letters = await openLetters(`sqlite:${join(folder, freshName())}`)
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    const own: [Buffer, Buffer | null][] = [
      [Buffer.from('twice'), Buffer.from('one')],
      [Buffer.from('none'), null],
      [Buffer.from('twice'), Buffer.from('two')],
      ...hostileNames.map((name): [Buffer, Buffer] => [Buffer.from(name), Buffer.from(name)]),
    ]
    const written = pairsOf(retryableHeaders(orders(), 1))
    const headers = new Map([...own, ...written]) as Map<Buffer, Buffer>
    await producer.send({ messages: [{ topic: dlt(), value: Buffer.from('x'), headers }] })
    const { letter } = await next('captured')
    dlq.handle(orders(), returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    await next('resolved')
    const [home] = await read(orders(), 1)
    const ours = home!.headers.filter(([name]) => !name.toString().startsWith('redrive-'))
    expect(ours).toEqual(own)
  })

  it.each([
    ['a null value as null', null, null],
    ['an empty value as empty', '', null],
    ['an edited value that was null', null, 'edited'],
  ])('returns %s', async (_, body, edited) => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (letter) => kept.put(letter))
    await dies(body, springHeaders(orders(), 1))
    const letter = await kept.next()
    await tap.returnToSource(edited === null ? letter : { ...letter, body: Buffer.from(edited) }, 1)
    const [home] = await read(orders(), 1)
    const isNull = body === null && edited === null ? true : undefined
    expect([home?.value.toString(), home?.isNull]).toEqual([edited ?? '', isNull])
  })

  it('refuses to return a letter without an original topic', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await started(async (letter) => kept.put(letter))
    await dies('lost', {})
    await expect(tap.returnToSource(await kept.next(), 1)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })

  it('stores each letter once and returns it on request, however often it dies', async () => {
    await using letters = await openLetters(`sqlite:${join(folder, freshName())}`)
    const { dlq, keep, keepAndCrash, next } = letters
    const crashing = await started(keepAndCrash)
    await dies('one', springHeaders(orders()))
    const { letter } = await next('captured')
    expect(letter).toMatchObject({
      queue: orders(),
      state: 'parked',
      failure: {
        name: 'IllegalStateException',
        message: 'no such customer',
        stack: 'IllegalStateException\n\tat com.acme.Billing.charge',
      },
      category: 'unknown',
      headers: { trace: 'abc' },
      source: { messageId: `${dlt()}:0:0`, deliveries: 3 },
      metadata: { origin: { topic: orders(), partition: '1', by: 'billing' } },
    })
    await crashing.stop()
    const tap = await started(keep)
    expect(await next('duplicate')).toMatchObject({ letter: { id: letter.id } })
    dlq.handle(orders(), returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    expect((await next('resolved')).letter.id).toBe(letter.id)
    const [home] = await read(orders(), 1)
    expect([home?.key?.toString(), home?.value.toString()]).toEqual(['key', 'one'])
    const headers = Object.fromEntries(home!.headers.map(([name, text]) => [String(name), text]))
    expect(headers).toMatchObject({ trace: Buffer.from('abc') })
    // The record dies again in a sink, which keeps its headers.
    await dies('one', {
      ...headers,
      ...connectHeaders(orders()),
      '__connect.errors.exception.class.name': Buffer.from(
        'org.apache.kafka.common.errors.SerializationException',
      ),
    })
    const again = (await next('captured')).letter
    expect(again).toMatchObject({
      state: 'parked',
      failure: {
        name: 'SerializationException',
        message: 'cannot convert (in VALUE_CONVERTER)',
      },
      category: 'validation',
      metadata: { replays: 1, originalId: `${dlt()}:0:0` },
    })
  })

  it('keeps a letter whose topic was deleted', async () => {
    await using letters = await openLetters()
    const { dlq, keep, next } = letters
    const tap = await started(keep)
    await dies('one', springHeaders(orders()))
    const { letter } = await next('captured')
    await next('parked')
    await admin.deleteTopics({ topics: [orders()] })
    dlq.handle(orders(), returnToSource(tap))
    dlq.start()
    await dlq.retry(letter.id)
    const { failure } = (await next('parked')).letter
    expect(failure.code).toBe('MAILBOX_UNAVAILABLE')
    expect(failure.message).toContain(`could not return the letter to the topic ${orders()}`)
    expect(await admin.listTopics()).not.toContain(orders())
  })

  it('reads nothing when it is stopped during the start', async () => {
    await endsWhileItStarts((clock) =>
      kafkaTap({ url, topics: [dlt()], groupId: place.name, keep: async () => {}, clock }),
    )
  })

  it('redelivers a record that could not be stored and does not commit it before', async () => {
    const kept = inbox<string>()
    const errors = inbox<unknown>()
    let fails = true
    const keep: Keep = async ({ body }) => {
      const text = Buffer.from(body).toString()
      if (text === 'first' && fails) throw new Error('the store is full')
      kept.put(text)
    }
    await started(keep, { onError: (error) => errors.put(error) })
    await dies('first', {})
    await dies('second', {})
    expect(await errors.next()).toMatchObject({ message: 'the store is full' })
    expect(await kept.next()).toBe('second')
    expect(await committed()).not.toContain(1)
    fails = false
    expect(await kept.next()).toBe('first')
    await expect.poll(committed).toContain(2)
  })

  it('continues after a restart with records that were not stored', async () => {
    const kept = inbox<string>()
    const keep: Keep = async ({ body }) => kept.put(Buffer.from(body).toString())
    const first = await started(keep)
    await dies('before', {})
    expect(await kept.next()).toBe('before')
    await first.stop()
    await dies('meanwhile', {})
    await started(keep)
    expect(await kept.next()).toBe('meanwhile')
  })

  it('finds topics by a pattern, also later ones', async () => {
    const kept = inbox<string>()
    const keep: Keep = async ({ body }) => kept.put(Buffer.from(body).toString())
    const pattern = new RegExp(`${place.name}\\..*\\.DLT`)
    await started(keep, { topics: pattern, lookEveryMs: 100 })
    await dies('one', {})
    expect(await kept.next()).toBe('one')
    const later = `${place.name}.later.DLT`
    await makeTopics(admin, [later])
    await dies('two', {}, later)
    expect(await kept.next()).toBe('two')
  })

  it('rejects the start when a topic does not exist', async () => {
    const keep: Keep = async () => {}
    await expect(started(keep, { topics: [`${place.name}.none`] })).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
    })
    expect(() => kafkaTap({ url, topics: [], keep })).toThrow(/at least one/)
  })
})
