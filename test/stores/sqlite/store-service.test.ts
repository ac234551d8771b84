import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { join } from 'node:path'
import { Dispatcher } from '../../../src/backends/sqlite/dispatcher.ts'
import type { CallOf, Report } from '../../../src/backends/sqlite/protocol.ts'
import type { StoreContext } from '../../../src/stores/sqlite/context.ts'
import type { Methods } from '../../../src/stores/sqlite/protocol.ts'
import { storeService } from '../../../src/stores/sqlite/store-service.ts'
import { sendLetter } from '../../../src/stores/sqlite/transfer.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

type Call = CallOf<Methods>

describe('Dispatcher of a store', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let dispatcher: Dispatcher<StoreContext>
  let reports: Report[]

  beforeEach(async () => {
    directory = await temporaryDirectory()
    reports = []
    const path = join(directory.path, 'letters.db')
    const options = { path, synchronous: 'full', busyTimeoutMs: 1000 } as const
    dispatcher = new Dispatcher(storeService(options), (report) => reports.push(report))
  })
  afterEach(async () => {
    dispatcher.close()
    await directory.clear()
  })

  const add = (number: number, letters = [aLetter()]): Call => [
    number,
    'add',
    { letters: letters.map((letter) => sendLetter(letter)) },
  ]
  const search = (number: number): Call => [
    number,
    'find',
    { filter: { text: 'nowhere' }, order: 'oldest', limit: 50, whole: false },
  ]
  const results = (): Report['results'] => reports.splice(0).flatMap((report) => report.results)

  it('reports writes before reads, and the end of the batch once', () => {
    dispatcher.run(0, [[1, 'tally', { by: 'state', filter: {} }], add(2), add(3)])
    expect(reports.map(({ isDone }) => isDone)).toEqual([false, true])
    expect(results()).toEqual([
      [2, []],
      [3, []],
      [1, [['pending', 2]]],
    ])
  })

  it('runs long reads in steps, with other batches in between', () => {
    dispatcher.run(0, [
      add(
        1,
        Array.from({ length: 1000 }, () => aLetter()),
      ),
    ])
    results()
    dispatcher.run(0, [search(2)])
    expect(reports.splice(0)).toEqual([{ results: [], errors: [], events: [], isDone: true }])
    dispatcher.run(0, [add(3)])
    expect(results().map(([number]) => number)).toEqual([3])
    let steps = 0
    for (; dispatcher.isBusy; steps++) dispatcher.step()
    expect(steps).toBeGreaterThan(1)
    expect(results()).toEqual([[2, { letters: [] }]])
  })

  it('removes many letters in steps, each in a transaction of its own', () => {
    dispatcher.run(0, [
      add(
        1,
        Array.from({ length: 600 }, () => aLetter()),
      ),
    ])
    dispatcher.run(0, [[2, 'remove', { state: 'pending' }]])
    results()
    dispatcher.run(0, [[3, 'tally', { by: 'queue', filter: {} }]])
    const [, counted] = results()[0]!
    expect(counted).toEqual([['orders', 350]])
    while (dispatcher.isBusy) dispatcher.step()
    expect(results()).toEqual([[2, 600]])
  })
})
