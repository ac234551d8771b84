import { describe, expect, it } from 'vitest'
import { mailboxTopic } from '../../../src/backends/kafka/topics.ts'

describe('mailboxTopic', () => {
  it('keeps letters, digits and hyphens and escapes other characters by their bytes', () => {
    expect(mailboxTopic('redrive.', 'orders-7')).toBe('redrive.orders-7')
    expect(mailboxTopic('', 'a b/ü')).toBe('a_20b_2F_C3_BC')
  })

  it('returns different topics for names that Kafka treats as equal', () => {
    const names = ['a.b', 'a_b', 'a_2Eb', 'a.2Eb', 'A.b', 'a b']
    const topics = names.map((name) => mailboxTopic('', name).replaceAll('.', '_'))
    expect(new Set(topics).size).toBe(names.length)
  })

  it('shortens long names to different topics', () => {
    const [one, other] = [`${'ü'.repeat(199)}x`, `${'ü'.repeat(199)}y`].map((name) =>
      mailboxTopic('p'.repeat(60), name),
    )
    expect(one).not.toBe(other)
    for (const topic of [one, other]) expect(topic).toMatch(/^[\w-]{1,249}$/)
  })
})
