import { Admin } from '@platformatic/kafka'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafkaTap } from '../../../src/taps/kafka.ts'
import type { ForeignLetter, Tap } from '../../../src/taps/tap.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { inbox, type Inbox } from '../../taps/inbox.ts'
import { openLetters } from '../../taps/letters.ts'
import { java, type JavaProgram } from '../java.ts'

const { url } = backend('kafka')
/** With three partitions, a partitioner unlike that of Java chooses another one for the key. */
const partitions = 3

interface Delivered {
  topic: string
  partition: number
  value: string
  headers: [name: string, hex: string | null][]
}

describe('a Kafka tap and Spring Kafka', () => {
  const place = kafkaPlace(url)
  const topicOf = (name: string): string => `${place.name}-${name}`
  const admin = new Admin({ clientId: place.name, bootstrapBrokers: [url] })
  const kept: Record<string, Inbox<ForeignLetter>> = { retryable: inbox(), plain: inbox() }
  const waiting: Delivered[] = []
  let spring: JavaProgram
  let tap: Tap

  beforeAll(async () => {
    const names = ['retryable', 'retryable-retry', 'retryable-dlt', 'plain', 'plain-dlt']
    await makeTopics(admin, names.map(topicOf), partitions)
    spring = java('spring', join(import.meta.dirname, 'Spring.java'), [url, place.name])
    tap = kafkaTap({
      url,
      topics: [topicOf('retryable-dlt'), topicOf('plain-dlt')],
      groupId: `${place.name}.tap`,
      keep: async (letter) => kept[Buffer.from(letter.body).toString()]?.put(letter),
    })
    await tap.start()
  })

  afterAll(async () => {
    await spring[Symbol.asyncDispose]()
    await tap.stop()
    await admin.close()
    await place.clear()
  })

  /** The next delivery of a topic to its listener. Two listeners print theirs in any order. */
  const delivered = async (name: string): Promise<Delivered> => {
    for (;;) {
      const at = waiting.findIndex(({ topic }) => topic === topicOf(name))
      if (at >= 0) return waiting.splice(at, 1)[0]!
      waiting.push(await spring.next<Delivered>())
    }
  }

  const withLineage = (before: Delivered, letter: ForeignLetter): Delivered['headers'] => [
    ...before.headers.filter(([name]) => name !== 'kafka_deliveryAttempt'),
    ['redrive-replays', Buffer.from('1').toString('hex')],
    ['redrive-original-id', Buffer.from(letter.messageId).toString('hex')],
  ]

  it('reads the dead records of @RetryableTopic, and returns them unchanged', async () => {
    await using letters = await openLetters()
    const before = await delivered('retryable')
    const letter = await kept['retryable']!.next()
    expect(letter).toMatchObject({
      source: topicOf('retryable'),
      reason: 'java.lang.IllegalStateException: the bank did not answer',
      deliveries: 2,
      origin: {
        topic: topicOf('retryable'),
        partition: String(before.partition),
        offset: '0',
        by: `${place.name}-group`,
      },
    })
    expect(Date.parse(letter.failedAt!)).toBeGreaterThan(Date.parse(letter.enqueuedAt!))
    await letters.keep(letter)
    const { category, failure } = (await letters.next('captured')).letter
    expect(category).toBe('timeout')
    expect(failure).toMatchObject({
      name: 'IllegalStateException',
      message: 'the bank did not answer',
      causes: [{ name: 'SocketTimeoutException', message: 'Read timed out', causes: [] }],
    })
    await tap.returnToSource(letter, 1)
    const after = await delivered('retryable')
    expect(after.headers).toEqual(withLineage(before, letter))
    expect(after.partition).toBe(before.partition)
    // Retries start again: the counters of Spring are not returned.
    expect(await kept['retryable']!.next()).toMatchObject({ deliveries: 2 })
  })

  it('reads the dead records of a DeadLetterPublishingRecoverer, and returns them unchanged', async () => {
    await using letters = await openLetters()
    const before = await delivered('plain')
    await delivered('plain')
    const letter = await kept['plain']!.next()
    expect(letter).toMatchObject({
      reason: 'java.lang.IllegalArgumentException: no such customer',
      deliveries: 2,
      origin: { topic: topicOf('plain'), by: `${place.name}-plain-group` },
    })
    await letters.keep(letter)
    expect((await letters.next('captured')).letter).toMatchObject({
      category: 'validation',
      failure: { name: 'IllegalArgumentException', message: 'no such customer', causes: [] },
    })
    await tap.returnToSource(letter, 1)
    const after = await delivered('plain')
    expect(after.headers.filter(([name]) => name !== 'kafka_deliveryAttempt')).toEqual(
      withLineage(before, letter),
    )
    expect(after.partition).toBe(before.partition)
  })
})
