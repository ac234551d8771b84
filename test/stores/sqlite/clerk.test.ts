import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { join } from 'node:path'
import { Clerk } from '../../../src/stores/sqlite/clerk.ts'
import { pack } from '../../../src/stores/rows/pack.ts'
import type { Call, Report } from '../../../src/stores/sqlite/protocol.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

describe('Clerk', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let clerk: Clerk
  let reports: Report[]

  beforeEach(async () => {
    directory = await temporaryDirectory()
    reports = []
    const path = join(directory.path, 'letters.db')
    const options = { path, synchronous: 'full', busyTimeoutMs: 1000 } as const
    clerk = new Clerk(options, (report) => reports.push(report))
  })
  afterEach(async () => {
    clerk.close()
    await directory.clear()
  })

  const add = (number: number, letters = [aLetter()]): Call => [
    number,
    'add',
    { letters: letters.map(pack) },
  ]
  const search = (number: number): Call => [
    number,
    'find',
    { filter: { text: 'nowhere' }, order: 'oldest', limit: 50, whole: false },
  ]
  /** By the number of the call. */
  const answers = (): [unknown, unknown][] =>
    reports
      .splice(0)
      .flatMap((report) => report.answers)
      .flatMap((one, at, all) => (at % 2 === 0 ? [[one, all[at + 1]]] : []))

  it('answers writes first and reads after them, and says once that the batch is done', () => {
    clerk.run(0, [[1, 'tally', { by: 'state', filter: {} }], add(2), add(3)])
    expect(reports.map(({ aside = false }) => aside)).toEqual([true, false])
    expect(answers()).toEqual([
      [2, [{ kind: 'added' }]],
      [3, [{ kind: 'added' }]],
      [1, [['pending', 2]]],
    ])
  })

  it('does what takes long in steps, and other batches in between', () => {
    clerk.run(0, [
      add(
        1,
        Array.from({ length: 1000 }, () => aLetter()),
      ),
    ])
    answers()
    clerk.run(0, [search(2)])
    expect(reports.splice(0)).toEqual([{ answers: [] }])
    clerk.run(0, [add(3)])
    expect(answers().map(([number]) => number)).toEqual([3])
    let steps = 0
    for (; clerk.busy; steps++) clerk.step()
    expect(steps).toBeGreaterThan(1)
    expect(answers()).toEqual([[2, { letters: [] }]])
  })

  it('removes many in steps, each a transaction of its own', () => {
    clerk.run(0, [
      add(
        1,
        Array.from({ length: 600 }, () => aLetter()),
      ),
    ])
    clerk.run(0, [[2, 'remove', { queue: 'orders' }]])
    answers()
    clerk.run(0, [[3, 'tally', { by: 'queue', filter: {} }]])
    const [, counted] = answers()[0]!
    expect(counted).toEqual([['orders', 350]])
    while (clerk.busy) clerk.step()
    expect(answers()).toEqual([[2, 600]])
  })
})
