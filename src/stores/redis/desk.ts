import type { Clock } from '../../clock/clock.ts'
import type { Script } from '../../backends/redis/script.ts'
import type { Argument, Reply, RedisConnection } from '../../backends/redis/connection.ts'
import { searcher, type Searcher } from './search.ts'
import { witness, type Witness } from './witness.ts'

/** What every verb works with: the way to the server, and what is remembered of it. */
export interface Desk {
  readonly connection: RedisConnection
  /** The hash tag that all keys have. */
  readonly tag: string
  readonly search: Searcher
  readonly witness: Witness
  /** The time for a script: nothing, where the server's own counts. */
  now(): string
  /** Runs a script that moves letters, and takes note of what all of them say first. Answers the rest. */
  moving(script: Script, args: readonly Argument[]): Promise<Reply[]>
}

export function deskOf(
  connection: RedisConnection,
  tag: string,
  clock: Clock | undefined,
  wake: () => void,
): Desk {
  const seen = witness()
  return {
    connection,
    tag,
    search: searcher(connection, tag),
    witness: seen,
    now: () => (clock ? String(Math.floor(clock.now())) : ''),
    async moving(script, args) {
      const reply = (await connection.run(script, args)) as [number, number, ...Reply[]]
      const [moves, woke, ...rest] = reply
      seen.saw(moves)
      if (woke === 1) wake()
      return rest
    },
  }
}

/** As many payload bytes as this weigh as much as a letter, so that few large ones fill a script too. */
const bytesPerItem = 32 * 2 ** 10

/** What a letter or a change with so many payload bytes weighs. */
export function weightOf(bytes: number): number {
  return 1 + Math.floor(bytes / bytesPerItem)
}

/** How often a verb looks again at letters that changed under its hands. */
export const maxLooks = 5
