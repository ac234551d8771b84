import { describe, expect, it } from 'vitest'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, expectToFit, redrive } from '../run-cli.ts'

const folder = aFolder()
const url = await aStoreFile(folder, [
  aLetter({ queue: 'charge-card' }),
  aLetter({ queue: 'charge-card', state: 'parked' }),
  aLetter({ queue: 'a-queue-with-a-rather-long-name-that-does-not-fit', state: 'archived' }),
])

describe('stats', () => {
  it('prints counts by queue and state, and lifetime totals', async () => {
    const { out, err, exit } = await redrive(['stats', '--store', url])
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expectToFit(out)
    const cells = out.split('\n').map((line) => line.trim().split(/ +/))
    expect(cells[2]).toEqual(['charge-card', '1', '0', '0', '0', '1', '0', '2'])
    expect(cells[3]).toEqual(['all', '1', '0', '0', '0', '1', '1', '3'])
    expect(out).toContain(
      '  3 captured, 0 retried\n  0 resolved, 0 rescheduled, 0 exhausted, 1 parked\n',
    )
  })

  it('prints one JSON document with --json', async () => {
    const { out } = await redrive(['stats', '--json', '--store', url])
    expect(JSON.parse(out)).toMatchObject({
      size: 2,
      states: { pending: 1, parked: 1, archived: 1 },
      queues: { 'charge-card': { pending: 1, parked: 1, resolved: 0 } },
      lifetime: { captured: 3 },
    })
  })

  it('rejects --watch 0', async () => {
    const { err, exit } = await redrive(['stats', '--watch', '0', '--store', url])
    expect(err).toContain('--watch must be a number of seconds from 0.2 to 86400')
    expect(exit).toBe(2)
  })
})
