import { join } from 'node:path'
import { openBooks, type Books } from '../../../src/mailboxes/sqlite/books.ts'
import type { SqlValue } from '../../../src/backends/sqlite/database.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

/** What a file has, without anything that is in memory alone. */
export interface Contents {
  messages: SqlValue[][]
  bodies: SqlValue[][]
}

export const contentsOf = ({ db }: Books): Contents => ({
  messages: db.all('SELECT * FROM messages ORDER BY mailbox, seq'),
  bodies: db.all('SELECT * FROM bodies ORDER BY seq'),
})

/** Two files that are alike, for what is done together in one and one by one in the other. */
export async function twoFiles(): Promise<{
  files: readonly [Books, Books]
  close: () => Promise<void>
}> {
  const directory = await temporaryDirectory()
  const files = ['a.db', 'b.db'].map((name) => openBooks(join(directory.path, name)))
  return {
    files: files as [Books, Books],
    close: async () => {
      for (const { db } of files) db.close()
      await directory.clear()
    },
  }
}

export function empty(books: Books): void {
  const { db } = books
  for (const table of ['messages', 'bodies']) db.run(`DELETE FROM ${table}`)
  books.n = 0
  books.filled.clear()
  books.expired.clear()
}
