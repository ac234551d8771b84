import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { connect } from '../../../src/connect/store.ts'
import { aFolder, aStoreFile, expectToFit, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()
const nowMs = systemClock.now()

/** Writes the records of processes as their heartbeats do. */
async function aStoreWith(records: { [id: string]: object }): Promise<string> {
  const url = await aStoreFile(folder, [])
  const store = await connect(url, systemClock)
  await store.open()
  for (const [id, value] of Object.entries(records))
    await store.records.put('worker', id, { seenAt: toTimestamp(nowMs + 600_000), ...value })
  await store.records.put('paused-queue', 'mails', { by: 'mia', reason: 'x' })
  await store.close()
  return url
}

const server = { kind: 'server', host: 'a', pid: 1, running: 0, slots: 0, queues: [], limiters: [] }
const worker = {
  kind: 'worker',
  host: 'b',
  pid: 2,
  version: '0.1.0',
  startedAt: toTimestamp(nowMs - 7_300_000),
  queues: ['charge-card', 'mails'],
  running: 2,
  slots: 10,
  limiters: [{ kind: 'queue', name: 'charge-card', state: 'open', inFlight: 0 }],
}

describe('workers', () => {
  it('prints a line for each live process', async () => {
    const dead = { queues: ['old'], seenAt: toTimestamp(nowMs - 3_600_000) }
    const url = await aStoreWith({ 'b-2': worker, 'a-1': server, dead })
    const { out, err, exit } = await redrive(['workers', '--store', url])
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expectToFit(out)
    expect(out).toBe(
      [
        'PROCESS KIND   RUNS STARTED SEEN QUEUES             HELD BACK',
        'a-1     server              now',
        'b-2     worker 2/10 2 h ago now  charge-card, mails charge-card breaker open, m…',
        '',
      ].join('\n'),
    )
  })

  it('prints a JSON document for each process with --json', async () => {
    const url = await aStoreWith({ 'b-2': worker })
    const { out } = await redrive(['workers', '--json', '--store', url])
    expect(JSON.parse(out)).toMatchObject({ id: 'b-2', ...worker, paused: ['mails'] })
  })

  it('prints hostile names without control characters', async () => {
    const url = await aStoreWith({ [hostileText]: { ...worker, queues: [hostileText] } })
    expectToFit((await redrive(['workers', '--store', url])).out)
  })

  it('says that there is none', async () => {
    const { out } = await redrive(['workers', '--store', await aStoreWith({})])
    expect(out).toBe('No process uses the store now.\n')
  })
})
