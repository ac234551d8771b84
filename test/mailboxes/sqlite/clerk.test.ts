import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Clerk } from '../../../src/mailboxes/sqlite/clerk.ts'
import type { Call, Report } from '../../../src/mailboxes/sqlite/protocol.ts'
import type { Retention } from '../../../src/mailboxes/sqlite/protocol.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

const mailbox = 1

describe('the clerk of a file', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  const clerks: Clerk[] = []
  let said: Report

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'mail.db')
  })
  afterEach(async () => {
    for (const clerk of clerks.splice(0)) clerk.close()
    await directory.clear()
  })

  const aClerk = (): Clerk => {
    const clerk = new Clerk(path, (report) => (said = report))
    clerks.push(clerk)
    return clerk
  }
  const retention: Retention = [1000, 7]
  const take: Call = [0, 'take', [mailbox, [1], retention]]
  const send = (id: string): Call => [
    1,
    'send',
    [mailbox, id, '{}', 0, retention],
    new Uint8Array(1),
  ]

  it('reports what has expired although what was sent with it could not be flushed', async () => {
    const [first, second] = [aClerk(), aClerk()]
    first.run(0, [[0, 'open', 'work'], send('a')])
    // It has the file open now, and not its log.
    second.run(0, [[0, 'count', [mailbox]]])
    await rename(`${path}-wal`, `${path}-gone`)
    second.run(2000, [take, send('b')])
    await rename(`${path}-gone`, `${path}-wal`)
    expect(said.troubles).toHaveLength(2)
    expect(said.troubles).toMatchObject([
      [0, { code: 'MAILBOX_UNAVAILABLE' }],
      [1, {}],
    ])
    expect(said.expired).toEqual([[7, 1]])
    first.run(2000, [[0, 'count', [mailbox]]])
    expect(said).toEqual({ answers: [0, 1] })
  })

  it('tells of nothing that was taken back', () => {
    const clerk = aClerk()
    clerk.run(0, [[0, 'open', 'work'], send('a')])
    clerk.run(2000, [take, send('b'), [2, 'send', [mailbox, 'without a body', '{}', 0, retention]]])
    expect(said.troubles).toHaveLength(3)
    expect(said).not.toHaveProperty('expired')
    clerk.run(2000, [take])
    expect(said.expired).toEqual([[7, 1]])
  })
})
