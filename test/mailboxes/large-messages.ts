import { expect } from 'vitest'
import type { Mailbox } from '../../src/mailbox.ts'

/**
 * A page or poll returns at most 32 MiB, and never claims for that reason that there is no more.
 */
export async function carriesSomeAtATime(mailbox: Mailbox): Promise<void> {
  const large = Buffer.alloc(11 * 1024 ** 2)
  for (const id of ['a', 'b', 'c', 'd']) await mailbox.send(large, { id })
  const pages: string[][] = []
  let after: string | undefined
  do {
    const page = await mailbox.browse!(after === undefined ? {} : { after })
    pages.push(page.messages.map(({ id }) => id))
    after = page.after
  } while (after !== undefined)
  expect(pages).toEqual([['a', 'b', 'c'], ['d']])
  const found = await Promise.all([1, 2, 3, 4, 5].map(() => mailbox.receive()))
  expect(found.map((one) => one.length)).toEqual([1, 1, 1, 1, 0])
}
