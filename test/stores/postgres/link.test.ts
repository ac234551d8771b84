import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { edit, resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { storeAddressOf } from '../../../src/stores/postgres/address.ts'
import { openLink, type Link } from '../../../src/stores/postgres/link.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { missing, openPostgresBench, url } from './postgres-bench.ts'

const failing = (code: string): string =>
  `DO $$ BEGIN RAISE EXCEPTION 'it fails' USING ERRCODE = '${code}'; END $$`

describe.skipIf(missing)('a transaction in which something fails that nobody waits for', () => {
  let link: Link

  beforeEach(() => {
    link = openLink(storeAddressOf({ url }), systemClock)
  })
  afterEach(() => link.close())

  it.each(['40P01', '40001', '55P03'])('is begun afresh after %s', async (code) => {
    let tries = 0
    const rows = await link.transaction('hot', (tx) => {
      if (++tries === 1) void tx.rows(failing(code))
      return tx.rows('SELECT 1')
    })
    expect([rows, tries]).toEqual([[[1]], 2])
  })

  it('says why, and not that it is aborted', async () => {
    const work = link.transaction('hot', (tx) => {
      void tx.rows(failing('54000'))
      return tx.rows('SELECT 1')
    })
    await expect(work).rejects.toMatchObject({ code: 'INVALID_INPUT', cause: { code: '54000' } })
  })

  it('does not take along a change that has nothing to do with it', async () => {
    const bench = await openPostgresBench()
    const [wrong, good] = [aLetter(), aLetter()]
    await bench.store.add([wrong, good, aLetter({ dependsOn: [good.id], lane: 'l' })])
    const by = { at: toTimestamp(Date.UTC(2026, 0, 2)), actor: 'me', guard: 'version' } as const
    const long = Array.from({ length: 6000 }, () => systemClock.id()).join('')
    const [edited, resolved] = await Promise.allSettled([
      bench.store.apply([edit(wrong, by, { tags: [long] })]),
      bench.store.apply([resolve(good, by)]),
    ])
    expect(edited).toMatchObject({ reason: { code: 'INVALID_INPUT' } })
    expect(resolved).toMatchObject({ value: ['written'] })
    await bench.close()
  })
})
