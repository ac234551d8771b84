import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/letter/letter.ts'
import type { Store } from '../../src/store.ts'
import { createProxy } from '../faults/proxy.ts'
import { removeMailboxes } from '../mailboxes/rabbitmq/place.ts'
import { backend, freshName } from '../servers/servers.ts'
import { compare, replayThrough, type BulkReplayResult } from './bulk/replay.ts'

const rabbitmq = backend('rabbitmq')
const messages = 1000
const timeout = 60_000

/** Replays to RabbitMQ while confirmations get lost, and then the connection. */
async function replayThroughCut(plant?: (store: Store) => Store): Promise<BulkReplayResult> {
  const proxy = await createProxy(rabbitmq.url)
  const name = freshName()
  try {
    return await replayThrough({
      url: `${proxy.through(rabbitmq.url)}#${name}`,
      directUrl: `${rabbitmq.url}#${name}`,
      messages,
      interrupt: async () => {
        await proxy.set('drop replies')
        await proxy.seen('reply dropped')
        await proxy.set('reset')
        await proxy.set('pass')
      },
      ...(plant ? { plant } : {}),
    })
  } finally {
    proxy.close()
    await removeMailboxes(rabbitmq.url, [name])
  }
}

/** A store that changes the letters of actions before it writes them. */
const changing =
  (change: (letters: PlannedJson[]) => PlannedJson[]) =>
  (store: Store): Store => {
    const put = store.records.put.bind(store.records)
    store.records.put = (kind, id, value, version) =>
      put(kind, id, kind === 'bulk-letters' ? change(value as PlannedJson[]) : value, version)
    return store
  }
type PlannedJson = { [key: string]: Json }

describe.skipIf(rabbitmq.missing)('a bulk replay whose connection is cut', () => {
  it(
    'publishes every message, and marks those that were published twice',
    { timeout },
    async () => {
      const { action, repeated, problems } = await replayThroughCut()
      expect(problems).toEqual([])
      expect(repeated).toBeGreaterThan(0)
      expect(action.progress.indeterminate).toBeGreaterThanOrEqual(repeated)
      expect(action.progress.succeeded + action.progress.indeterminate).toBe(messages)
    },
  )

  it('is found faulty if it forgets that it sent a message', { timeout }, async () => {
    const forget = changing((letters) => letters.map((letter) => ({ ...letter, sends: 0 })))
    const { problems } = await replayThroughCut(forget)
    expect(problems).not.toEqual([])
    for (const problem of problems) expect(problem).toContain('its result does not say so')
  })
})

describe('the verdict on a bulk replay', () => {
  const ids = ['m0', 'm1']
  const both = new Map([
    ['m0', 1],
    ['m1', 2],
  ])

  it('accepts a repeated message that is marked', () => {
    const outcomes = new Map([
      ['m0', 'succeeded'],
      ['m1', 'indeterminate'],
    ] as const)
    expect(compare(ids, outcomes, both)).toEqual({ repeated: 1, problems: [] })
  })

  it('finds a repeated message without a mark', () => {
    const outcomes = new Map([
      ['m0', 'succeeded'],
      ['m1', 'succeeded'],
    ] as const)
    expect(compare(ids, outcomes, both).problems).toEqual([
      'm1 arrived 2 times, its result does not say so',
    ])
  })

  it('finds a lost result and a lost message', () => {
    expect(compare(ids, new Map([['m0', 'succeeded']]), new Map([['m1', 1]])).problems).toEqual([
      'm0 did not arrive',
      'm1 has no result',
    ])
  })

  it('finds a message that was skipped', () => {
    const outcomes = new Map([
      ['m0', 'skipped'],
      ['m1', 'indeterminate'],
    ] as const)
    expect(compare(ids, outcomes, both).problems).toEqual(['m0 is skipped'])
  })
})
