import { Admin, Producer } from '@platformatic/kafka'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafkaTap } from '../../../src/taps/kafka.ts'
import type { ForeignLetter, Tap } from '../../../src/taps/tap.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { inbox } from '../../taps/inbox.ts'
import { openLetters } from '../../taps/letters.ts'
import { compile, java, type JavaProgram } from '../java.ts'

const { url } = backend('kafka')
const sentMs = Date.UTC(2026, 0, 2, 3, 4, 5)

describe('a Kafka tap and Kafka Connect', () => {
  const place = kafkaPlace(url)
  const topic = `${place.name}-payments`
  const dlq = `${place.name}-payments-dlq`
  const settings = { clientId: place.name, bootstrapBrokers: [url] }
  const admin = new Admin(settings)
  const producer = new Producer(settings)
  const kept = inbox<ForeignLetter>()
  let folder: string
  let connect: JavaProgram
  let tap: Tap

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redrive-connect-'))
    await makeTopics(admin, [topic, dlq], 2)
    compile('connect', join(import.meta.dirname, 'FailingSink.java'), folder)
    const files = await Promise.all([
      write('worker', {
        'bootstrap.servers': url,
        'key.converter': 'org.apache.kafka.connect.storage.StringConverter',
        'value.converter': 'org.apache.kafka.connect.json.JsonConverter',
        'value.converter.schemas.enable': 'false',
        'offset.storage.file.filename': join(folder, 'offsets'),
        'plugin.discovery': 'only_scan',
        listeners: 'http://127.0.0.1:0',
      }),
      write('sink', {
        name: `${place.name}-sink`,
        'connector.class': 'FailingSink',
        topics: topic,
        'consumer.override.auto.offset.reset': 'earliest',
        'consumer.override.group.id': `${place.name}-sink`,
        'errors.tolerance': 'all',
        'errors.deadletterqueue.topic.name': dlq,
        'errors.deadletterqueue.topic.replication.factor': '1',
        'errors.deadletterqueue.context.headers.enable': 'true',
      }),
    ])
    const main = 'org.apache.kafka.connect.cli.ConnectStandalone'
    connect = java('connect', main, files, { classes: folder })
    const groupId = `${place.name}.tap`
    tap = kafkaTap({ url, topics: [dlq], groupId, keep: async (letter) => kept.put(letter) })
    await tap.start()
  })

  afterAll(async () => {
    await connect[Symbol.asyncDispose]()
    await tap.stop()
    await Promise.all([admin.close(), producer.close()])
    await place.clear()
    await rm(folder, { recursive: true, force: true })
  })

  const write = async (name: string, values: Record<string, string>): Promise<string> => {
    const file = join(folder, `${name}.properties`)
    const lines = Object.entries(values).map(([key, value]) => `${key}=${value}\n`)
    await writeFile(file, lines.join(''))
    return file
  }

  const pay = (body: string): Promise<unknown> =>
    producer.send({
      messages: [
        {
          topic,
          partition: 1,
          value: Buffer.from(body),
          headers: new Map([[Buffer.from('trace'), Buffer.from('abc')]]),
          timestamp: BigInt(sentMs),
        },
      ],
    })

  it('reports when a record was sent, what failed and why, and returns it', async () => {
    await using letters = await openLetters()
    const beganMs = Date.now()
    await pay('{ this is no JSON')
    const unreadable = await kept.next()
    expect(unreadable).toMatchObject({
      source: topic,
      enqueuedAt: new Date(sentMs).toISOString(),
      error: { name: 'DataException' },
      origin: { topic, partition: '1', offset: '0' },
    })
    expect(unreadable).not.toHaveProperty('failedAt')
    await letters.keep(unreadable)
    const first = (await letters.next('captured')).letter
    expect(first).toMatchObject({
      category: 'validation',
      source: { enqueuedAt: new Date(sentMs).toISOString() },
      failure: { causes: [{ name: 'SerializationException' }] },
    })
    expect(Date.parse(first.failedAt)).toBeGreaterThanOrEqual(beganMs)

    await pay('{"amount":42}')
    const unwritable = await kept.next()
    await letters.keep(unwritable)
    expect((await letters.next('captured')).letter).toMatchObject({
      category: 'timeout',
      failure: {
        name: 'ConnectException',
        causes: [{ name: 'SocketTimeoutException', message: 'Read timed out' }],
      },
    })
    // Connect reads the returned record and fails again.
    await tap.returnToSource(unwritable, 1)
    const again = await kept.next()
    expect(again).toMatchObject({
      origin: { partition: '1', offset: '2' },
      headers: { trace: 'abc', 'redrive-replays': '1' },
    })
    expect(Buffer.from(again.body).toString()).toBe('{"amount":42}')
  })
})
