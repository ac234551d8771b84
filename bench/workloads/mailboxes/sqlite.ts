import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteMailbox } from '../../../src/mailboxes/sqlite/sqlite.ts'
import { body, runWorkers, inBatches, type Pair, type Raw } from './pair.ts'

export async function open(): Promise<Pair> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-bench-'))
  const mailbox = sqliteMailbox({ path: join(folder, 'mail.db'), name: 'bench' })
  await mailbox.open()
  const db = new DatabaseSync(join(folder, 'raw.db'))
  return {
    mailbox,
    ...rawOn(db),
    close: async () => {
      await mailbox.close()
      db.close()
      await rm(folder, { recursive: true })
    },
  }
}

/**
 * A table with an index of visible messages, in WAL mode with synchronous=FULL, in this thread.
 * Messages are inserted in one transaction, the oldest visible ones are claimed in a second and
 * deleted in a third. Each sync blocks the event loop. A mailbox does more: deduplication by id,
 * retention, and receipts that expire.
 */
function rawOn(db: DatabaseSync): { raw: Raw; batched: Raw } {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec(
    'CREATE TABLE mail (seq INTEGER PRIMARY KEY, visible_ms INTEGER NOT NULL, deliveries INTEGER NOT NULL, body BLOB NOT NULL)',
  )
  db.exec('CREATE INDEX mail_visible ON mail (visible_ms)')
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const insert = db.prepare('INSERT INTO mail (visible_ms, deliveries, body) VALUES (?, 0, ?)')
  const claim = db.prepare(
    `UPDATE mail SET visible_ms = ?, deliveries = deliveries + 1
     WHERE seq IN (SELECT seq FROM mail WHERE visible_ms <= ? ORDER BY seq LIMIT ?) RETURNING seq, body`,
  )
  const remove = db.prepare('DELETE FROM mail WHERE seq = ?')
  const transaction = <T>(work: () => T): T => {
    begin.run()
    const value = work()
    commit.run()
    return value
  }
  const trip = (count: number): void => {
    const nowMs = Date.now()
    transaction(() => {
      for (let n = 0; n < count; n++) insert.run(nowMs, body())
    })
    const claimed = transaction(() => claim.all(nowMs + 30_000, nowMs, count))
    transaction(() => {
      for (const { seq } of claimed) remove.run(seq!)
    })
  }
  return {
    raw: (messages, inFlight) => runWorkers(messages, inFlight, async () => trip(1)),
    batched: (messages, inFlight) => inBatches(messages, inFlight, trip),
  }
}
