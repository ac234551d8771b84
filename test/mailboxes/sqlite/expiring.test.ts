import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openContext, type MailContext } from '../../../src/mailboxes/sqlite/context.ts'
import { expireId, hasOverdue, sweep } from '../../../src/mailboxes/sqlite/expiring.ts'
import type { Retention } from '../../../src/mailboxes/sqlite/protocol.ts'
import { send } from '../../../src/mailboxes/sqlite/sending.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

const mailbox = 1
const retention: Retention = [1000, 7]
const noRetention: Retention = [0, 8]

describe('sweep', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let context: MailContext
  let sent: number
  beforeEach(async () => {
    directory = await temporaryDirectory()
    context = openContext(join(directory.path, 'mail.db'))
    sent = 0
  })
  afterEach(async () => {
    context.db.close()
    await directory.clear()
  })

  const add = (count: number): void => {
    for (let n = 0; n < count; n++)
      send(context, [mailbox, `m${sent++}`, '{}', new Uint8Array(1), 0, retention])
  }
  const seqs = (table: string): unknown[] =>
    context.db.all(`SELECT seq FROM ${table} ORDER BY seq`).flat()
  const left = (): number => {
    expect(seqs('bodies')).toEqual(seqs('messages'))
    return seqs('messages').length
  }
  const sweepAt = (ms: number, by = retention): void => {
    context.nowMs = ms
    sweep(context, mailbox, by)
  }

  it('removes at most 200 messages per call', () => {
    add(450)
    context.nowMs = 500
    add(5)
    expect(hasOverdue(context, mailbox, retention)).toBe(false)
    const lefts = [1, 2, 3, 4].map(() => {
      sweepAt(1000)
      return left()
    })
    expect(lefts).toEqual([255, 55, 5, 5])
    expect(context.expired).toEqual(new Map([[7, 450]]))
  })

  it('scans again only after 50 ms', () => {
    sweepAt(1030)
    add(1)
    sweepAt(2029)
    sweepAt(2070)
    expect(left()).toBe(1)
    sweepAt(2079)
    expect(left()).toBe(0)
  })

  it('removes nothing for receivers without a retention', () => {
    add(3)
    sweepAt(1e9, noRetention)
    expect(left()).toBe(3)
    expect(expireId(context, mailbox, 'm1', noRetention)).toBe(false)
  })

  it('keeps an expired message while a receiver holds it', () => {
    add(3)
    context.db.run('UPDATE messages SET held = 1, hidden_until = ? WHERE seq = 2', 5000)
    sweepAt(1000)
    expect(seqs('messages')).toEqual([2])
    expect(expireId(context, mailbox, 'm1', retention)).toBe(false)
    context.nowMs = 5000
    expect(hasOverdue(context, mailbox, retention)).toBe(true)
    expect(expireId(context, mailbox, 'm1', retention)).toBe(true)
    expect(left()).toBe(0)
  })
})
