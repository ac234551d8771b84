import { describe, expect, it } from 'vitest'
import { topicOf } from '../../../src/backends/kafka/mailbox-naming.ts'

describe('topicOf', () => {
  it('leaves plain names as they are, and writes all else by its bytes', () => {
    expect(topicOf('redrive.', 'orders-7')).toBe('redrive.orders-7')
    expect(topicOf('', 'a b/ü')).toBe('a_20b_2F_C3_BC')
  })

  it('keeps names apart that Kafka takes for the same', () => {
    const names = ['a.b', 'a_b', 'a_2Eb', 'a.2Eb', 'A.b', 'a b']
    const topics = names.map((name) => topicOf('', name).replaceAll('.', '_'))
    expect(new Set(topics).size).toBe(names.length)
  })

  it('shortens long names, and keeps them apart', () => {
    const [one, other] = [`${'ü'.repeat(199)}x`, `${'ü'.repeat(199)}y`].map((name) =>
      topicOf('p'.repeat(60), name),
    )
    expect(one).not.toBe(other)
    for (const topic of [one, other]) expect(topic).toMatch(/^[\w-]{1,249}$/)
  })
})
