import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { aLetter } from '../../../src/testing/index.ts'
import { runChild } from '../run-child.ts'
import { missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

describe.skipIf(missing)('postgresStore shared by processes', { timeout: 90_000 }, () => {
  let bench: PostgresBench
  const names = ['a', 'b', 'c', 'd']
  const child = (task: string, ...name: string[]): Promise<string[]> =>
    runChild('postgres', task, url, bench.schema, ...name)

  beforeEach(async () => (bench = await openPostgresBench()))
  afterEach(() => bench.close())

  it('stores one letter of a dedupe key that eight processes capture a thousand times', async () => {
    const children = Array.from({ length: 8 }, () => child('storm'))
    const kinds = (await Promise.all(children)).flat()
    expect(kinds.length).toBe(1000)
    expect(kinds.filter((kind) => kind === 'added').length).toBe(1)
    const { items } = await bench.store.find({})
    expect(items.map(({ occurrences }) => occurrences)).toEqual([1000])
    const totals = (await bench.store.totals()).map(({ action, count }) => [action, count])
    expect(Object.fromEntries(totals)).toEqual({ capture: 1, occur: 999 })
  })

  it('gives each letter to one of four workers', async () => {
    const letters = Array.from({ length: 400 }, () => aLetter())
    await bench.store.add(letters)
    const drained = names.map((name) => child('drain', name))
    const taken = (await Promise.all(drained)).flat()
    expect(taken.toSorted()).toEqual(letters.map(({ id }) => id))
    expect(await bench.store.tally('state')).toEqual(new Map([['resolved', 400]]))
    const [resolved] = (await bench.store.totals()).filter(({ action }) => action === 'resolve')
    expect(resolved?.count).toBe(400)
  })

  it('does not keep the process alive when the store is not closed', async () => {
    await child('leave')
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 1]]))
  })
})
