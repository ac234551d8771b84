import { describe, expect, it } from 'vitest'
import {
  packBatch,
  packReport,
  unpackBatch,
  unpackReport,
} from '../../../src/mailboxes/sqlite/crossing.ts'
import type { Batch, Call, Kept, Report } from '../../../src/mailboxes/sqlite/protocol.ts'

const send = (id: string, ...bytes: number[]): Call => ({
  verb: 'send',
  ask: {
    mailbox: 1,
    id,
    about: '"é\u0000"',
    bytes: Uint8Array.from(bytes),
    delayMs: 0,
    retentionMs: 5,
  },
})
const kept = (seq: number, ...bytes: number[]): Kept => ({
  seq,
  deliveries: 1,
  id: `id ${seq}`,
  about: '{}',
  bytes: Uint8Array.from(bytes),
  released: 0,
  failures: 0,
  enqueuedMs: 1,
  firstMs: null,
})
const take: Call = { verb: 'take', ask: { mailbox: 1, slots: [1, 2] } }
const browse: Call = { verb: 'browse', ask: { mailbox: 1, after: 0, limit: 2 } }
const count: Call = { verb: 'count', ask: { mailbox: 1 } }

describe('a crossing', () => {
  it('brings a batch over as it was, with the bytes of each call', () => {
    const batch = (): Batch => ({
      nowMs: 7,
      calls: [send('a', 1, 2), count, send('none'), take, send('b', 3)],
    })
    expect(unpackBatch(packBatch(batch()))).toEqual(batch())
  })

  it('brings a report over as it was, with the bytes of each message', () => {
    const calls = [count, take, browse]
    const report = (): Report => ({
      answers: [3, { found: [kept(1, 1, 2), kept(2)], nextMs: 4 }, [kept(3, 255)]],
      expired: [[1, 2]],
    })
    expect(unpackReport(packReport(report(), calls), calls)).toEqual(report())
  })

  it('gives each message a buffer of its own', () => {
    const report: Report = { answers: [[kept(1, 1, 2), kept(2, 3)]], expired: [] }
    const { answers } = unpackReport(packReport(report, [browse]), [browse])
    const sizes = (answers as Kept[][])[0]!.map(({ bytes }) => bytes.buffer.byteLength)
    expect(sizes).toEqual([2, 1])
  })

  it('brings over what all calls failed with', () => {
    const report: Report = {
      answers: { code: 'MAILBOX_UNAVAILABLE', message: 'full' },
      expired: [],
    }
    expect(unpackReport(packReport(report, [take]), [take])).toEqual(report)
  })
})
