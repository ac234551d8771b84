import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Dispatcher } from '../../../src/backends/sqlite/dispatcher.ts'
import type { CallOf, Report } from '../../../src/backends/sqlite/protocol.ts'
import type { MailContext } from '../../../src/mailboxes/sqlite/context.ts'
import type { Methods, Retention } from '../../../src/mailboxes/sqlite/protocol.ts'
import { mailService } from '../../../src/mailboxes/sqlite/mail-service.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

type Call = CallOf<Methods>

const mailbox = 1

describe('Dispatcher of a mail file', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  const dispatchers: Dispatcher<MailContext>[] = []
  let last: Report

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'mail.db')
  })
  afterEach(async () => {
    for (const dispatcher of dispatchers.splice(0)) dispatcher.close()
    await directory.clear()
  })

  const aDispatcher = (): Dispatcher<MailContext> => {
    const dispatcher = new Dispatcher(mailService(path), (report) => (last = report))
    dispatchers.push(dispatcher)
    return dispatcher
  }
  const retention: Retention = [1000, 7]
  const take: Call = [0, 'take', [mailbox, [1], retention]]
  const send = (id: string): Call => [
    1,
    'send',
    [mailbox, id, '{}', new Uint8Array(1), 0, retention],
  ]

  it('reports expired messages although a message of the same batch could not be flushed', async () => {
    const [first, second] = [aDispatcher(), aDispatcher()]
    first.run(0, [[0, 'open', 'work'], send('a')])
    // The second one opens the file, but not its WAL.
    second.run(0, [[0, 'count', [mailbox]]])
    await rename(`${path}-wal`, `${path}-gone`)
    second.run(2000, [take, send('b')])
    await rename(`${path}-gone`, `${path}-wal`)
    expect(last.errors).toMatchObject([
      [0, { code: 'MAILBOX_UNAVAILABLE' }],
      [1, { code: 'MAILBOX_UNAVAILABLE' }],
    ])
    expect(last.events).toEqual([[[7, 1]]])
    first.run(2000, [[0, 'count', [mailbox]]])
    expect(last.results).toEqual([[0, 1]])
  })

  it('runs the calls of a failed batch alone, and reports expired messages once', () => {
    const dispatcher = aDispatcher()
    dispatcher.run(0, [[0, 'open', 'work'], send('a')])
    const broken = [mailbox, 'without a body', '{}', undefined as never, 0, retention] as const
    dispatcher.run(2000, [take, send('b'), [2, 'send', [...broken]]])
    expect(last.errors.map(([id]) => id)).toEqual([2])
    expect(last.results.map(([id]) => id)).toEqual([0, 1])
    expect(last.events).toEqual([[[7, 1]]])
  })

  it('answers a receiver of an empty mailbox without a write transaction', () => {
    const [first, second] = [aDispatcher(), aDispatcher()]
    first.run(0, [[0, 'open', 'work']])
    const other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    second.run(0, [take])
    other.close()
    expect(last.results).toEqual([[0, { found: [] }]])
  })

  it('flushes sends at once and deliveries later', () => {
    const dispatcher = aDispatcher()
    dispatcher.run(0, [[0, 'open', 'work'], send('a')])
    expect(dispatcher.isUnflushed).toBe(false)
    dispatcher.run(0, [take])
    expect(dispatcher.isUnflushed).toBe(true)
    dispatcher.flush()
    expect(dispatcher.isUnflushed).toBe(false)
  })
})
