import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readFile, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { openSqliteBench } from './sqlite-bench.ts'

function payloadOf(text: string): DeadLetter['payload'] {
  const bytes = new TextEncoder().encode(text)
  return { bytes, contentType: 'text/plain', size: bytes.length, version: 1 }
}

describe('sqliteStore with a damaged letter', () => {
  let bench: Awaited<ReturnType<typeof openSqliteBench>>
  let letters: DeadLetter[]

  beforeEach(async () => {
    bench = await openSqliteBench()
    letters = [1, 2, 3].map(() => aLetter({ metadata: { a: 1 } }))
    await bench.store.add(letters)
  })
  afterEach(() => bench.close())

  /** Writes over something of the second letter behind the store's back. */
  function damage(sql: string): void {
    const file = new DatabaseSync(bench.path)
    file.prepare(sql).run(letters[1]!.id)
    file.close()
  }

  const byId = "WHERE id = unhex(?, '-')"
  const seq = `(SELECT seq FROM letters ${byId})`
  const damages: [what: string, sql: string, seenInLists: boolean][] = [
    ['a column that is not JSON', `UPDATE letters SET metadata = '{' ${byId}`, true],
    ['a column that is another JSON', `UPDATE letters SET tags = '5' ${byId}`, true],
    ['a history that is not JSON', `UPDATE letters SET history = 'x' ${byId}`, false],
    ['an origin that is not JSON', `UPDATE bodies SET origin = 'x' WHERE seq = ${seq}`, true],
    ['a flipped byte', `UPDATE bodies SET bytes = x'00' WHERE seq = ${seq}`, false],
    ['no body', `DELETE FROM bodies WHERE seq = ${seq}`, true],
  ]

  it.each(damages)('shows %s as corrupt, and the others whole', async (_, sql, seenInLists) => {
    damage(sql)
    const got = await bench.store.get(letters.map(({ id }) => id))
    expect(got.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, true, false])
    expect(got[0]).toEqual(letters[0])
    expect(got[1]).toMatchObject({ id: letters[1]!.id, queue: 'orders' })
    const { items } = await bench.store.find({ ids: letters.map(({ id }) => id), order: 'oldest' })
    expect(items.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, seenInLists, false])
  })

  it('detects a flipped byte on the disk', async () => {
    const marked = aLetter({ payload: payloadOf('a string that is nowhere else in the file') })
    await bench.store.add([marked])
    const store = await bench.reopen!()
    await store.close()
    const file = await readFile(bench.path)
    const at = file.indexOf('nowhere else')
    file[at] = file[at]! ^ 1
    await writeFile(bench.path, file)
    const again = await bench.another!()
    const [good, bad] = await again.get([letters[0]!.id, marked.id])
    expect(good).toEqual(letters[0])
    expect(bad).toMatchObject({ id: marked.id, corrupt: expect.stringContaining('payload') })
  })

  it('reports that the original is missing', async () => {
    damage(`DELETE FROM bodies WHERE seq = ${seq}`)
    expect(await bench.store.original(letters[1]!.id)).toBeUndefined()
    expect(await bench.store.original(letters[0]!.id)).toEqual(letters[0]!.payload)
  })

  it('lets a damaged letter be claimed, so that it can be parked', async () => {
    damage(`UPDATE letters SET tags = '{' ${byId}`)
    const claim = await bench.store.claim({ worker: 'w', limit: 5, leaseMs: 1000 })
    expect(claim.letters.map(({ corrupt }) => corrupt !== undefined)).toEqual([false, true, false])
  })

  it('removes a damaged letter when asked', async () => {
    damage(`UPDATE letters SET tags = '{' ${byId}`)
    expect(await bench.store.remove({ ids: [letters[1]!.id] })).toBe(1)
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 2]]))
  })
})
