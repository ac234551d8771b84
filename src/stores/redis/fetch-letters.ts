import type { Reply, RedisConnection } from '../../backends/redis/connection.ts'
import { sendInChunks } from './chunks.ts'
import type { Fetched, Parts } from './decode.ts'
import { scripts } from './scripts.ts'

/** Which parts of a letter are read: those in lists, or all. */
export type Extent = 'summary' | 'whole'

/** The number of payload bytes after which one script ends. */
const maxFetchBytes = 16 * 2 ** 20

/** The letters with these ids, in the given order, in as many scripts as their size requires. */
export function fetchLetters(
  connection: RedisConnection,
  ids: readonly string[],
  extent: Extent,
): Promise<Fetched[]> {
  return sendInChunks(ids, async (some) => {
    const fetched: Fetched[] = []
    for (let left = some; left.length > 0;) {
      const reply = await connection.run(scripts.fetch, [extent, String(maxFetchBytes), ...left])
      const letters = reply as ([...Parts, Reply[]] | null)[]
      for (const [at, letter] of letters.entries()) {
        if (!letter) continue
        const [row, body, fields, waits] = letter
        fetched.push({ id: left[at]!, parts: [row, body, fields], waits })
      }
      left = left.slice(letters.length)
    }
    return fetched
  })
}
