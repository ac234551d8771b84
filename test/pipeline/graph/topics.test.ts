import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  checkTopic,
  dlqTopicOf,
  dlqTopicsOf,
  inputTopicOf,
  quarantineTopicOf,
  replaysTopicOf,
} from '../../../src/pipeline/graph/topics.ts'

const node = '7b0f2a5c-3f1d-4f8e-9b5a-0c9d8e7f6a5b'
const place = { cluster: 'prod', graph: 'docs', node }

/** Kafka treats a dot and an underscore as equal when it checks whether a name is free. */
const asKafkaSees = (topic: string): string => topic.replaceAll('.', '_')

describe('dlqTopicOf', () => {
  it('is dlq.{cluster_id}.{node-uuid}', () => {
    expect(dlqTopicOf(place)).toBe(`dlq.prod.${node}`)
  })

  it('is the configured name, unless it is empty', () => {
    expect(dlqTopicOf(place, 'my.dead_letters')).toBe('my.dead_letters')
    expect(dlqTopicOf(place, '')).toBe(`dlq.prod.${node}`)
  })

  it('rejects an invalid name', () => {
    for (const topic of ['a b', 'a/b', '.', '..', 'ü', 'x'.repeat(250)])
      expect(() => dlqTopicOf(place, topic)).toThrow('is not a valid topic name')
  })

  it.each([
    ['a.b', 'a_2Eb'],
    ['a_b', 'a_5Fb'],
    ['a b', 'a_20b'],
    ['a/b', 'a_2Fb'],
    ['ü', '_C3_BC'],
    ['..', '_2E_2E'],
  ])('escapes %j as %s', (id, escaped) => {
    expect(dlqTopicOf({ cluster: id, node: id })).toBe(`dlq.${escaped}.${escaped}`)
  })
})

describe('topic names', () => {
  const id = fc.oneof(
    fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme' }),
    fc.string({
      minLength: 1,
      maxLength: 6,
      unit: fc.constantFrom('a', '.', '_', '-', '2', 'E', ' '),
    }),
    fc.constantFrom('x'.repeat(199), `${'x'.repeat(199)}y`, '.'.repeat(200), '_'.repeat(200)),
  )
  const places = fc.record({ cluster: id, graph: id, node: id })
  const namesOf = (place: { cluster: string; graph: string; node: string }): string[] => [
    inputTopicOf(place),
    dlqTopicOf(place),
    quarantineTopicOf(place),
    replaysTopicOf(place),
  ]

  it('are valid in Kafka, whatever the ids are', () => {
    fc.assert(
      fc.property(places, (place) => {
        for (const topic of namesOf(place)) expect(checkTopic(topic)).toBe(topic)
      }),
    )
  })

  it('are distinct for distinct nodes, also for Kafka', () => {
    fc.assert(
      fc.property(places, places, (one, other) => {
        const isSame = one.cluster === other.cluster && one.node === other.node
        fc.pre(!isSame)
        const all = [...namesOf(one), ...namesOf(other)].map(asKafkaSees)
        expect(new Set(all).size).toBe(all.length)
      }),
    )
  })

  it('end in a hash if an id is too long, and are distinct', () => {
    const long = (last: string): string =>
      dlqTopicOf({ cluster: 'c', node: 'n'.repeat(200) + last })
    expect(long('a')).toHaveLength('dlq.c.'.length + 110)
    expect(long('a')).toMatch(/_-[0-9a-f]{64}$/)
    expect(long('a')).not.toBe(long('b'))
  })
})

describe('dlqTopicsOf', () => {
  it('matches the DLQ and quarantine topics of one cluster', () => {
    const topics = dlqTopicsOf('a.b')
    const inIt = { cluster: 'a.b', node: 'x.y' }
    expect(topics.test(dlqTopicOf(inIt))).toBe(true)
    expect(topics.test(quarantineTopicOf(inIt))).toBe(true)
    expect(topics.test(replaysTopicOf(inIt))).toBe(false)
    expect(topics.test(dlqTopicOf({ cluster: 'a', node: 'b.x' }))).toBe(false)
    expect(topics.test(dlqTopicOf({ cluster: 'aXb', node: 'x' }))).toBe(false)
  })
})
