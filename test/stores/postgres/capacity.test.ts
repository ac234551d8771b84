import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import type { Capacity } from '../../../src/store.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { meanwhile, missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

const capacity: Capacity = { maxItems: 2, overflow: 'evict-resolved' }

describe.skipIf(missing)('a capacity of postgresStore', () => {
  let bench: PostgresBench
  const old = aLetter({ state: 'resolved' })

  beforeEach(async () => {
    bench = await openPostgresBench()
    await bench.store.add([old, aLetter()])
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await bench.close()
  })

  it.each([
    ['is looked for', 'ORDER BY r.settled_at'],
    ['is locked', 'l.settled_at, l.id FOR UPDATE SKIP LOCKED'],
  ])('has room when the resolved letter is removed right before it %s', async (_, statement) => {
    meanwhile(statement, () => bench.store.remove({ ids: [old.id] }))
    expect(await bench.store.add([aLetter()], capacity)).toEqual([{ kind: 'added' }])
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 2]]))
  })

  it('waits for a transaction that has the resolved letter locked', async () => {
    const other = new Client({ connectionString: url })
    await other.connect()
    let isHeld = false
    const clock: Clock = {
      ...systemClock,
      // Asked for when a transaction is about to be begun afresh.
      random: () => {
        if (isHeld) void other.end()
        return systemClock.random()
      },
    }
    const store = await bench.another({ clock })
    meanwhile('l.settled_at, l.id FOR UPDATE SKIP LOCKED', async () => {
      await other.query('BEGIN')
      await other.query(`SELECT FROM "${bench.schema}".letters WHERE id = $1 FOR SHARE`, [old.id])
      isHeld = true
    })
    try {
      expect(await store.add([aLetter()], capacity)).toEqual([{ kind: 'added', evicted: 1 }])
    } finally {
      await other.end()
    }
  })
})
