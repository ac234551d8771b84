import type { Clock } from '../../clock/clock.ts'
import type { Script } from '../../backends/redis/script.ts'
import type { Argument, Reply, RedisConnection } from '../../backends/redis/connection.ts'
import { LostWriteDetector } from './lost-writes.ts'

/** What all operations share: the connection, and the state that the store remembers. */
export interface StoreContext {
  readonly connection: RedisConnection
  /** The hash tag of all keys. */
  readonly tag: string
  readonly lostWrites: LostWriteDetector
  /** The time for a script; empty means the time of the server. */
  now(): string
  /**
   * Runs a script that moves letters, handles the first two values of its reply (the number of
   * moves, and whether to wake), and returns the rest.
   */
  runMove(script: Script, args: readonly Argument[]): Promise<Reply[]>
}

export function createContext(
  connection: RedisConnection,
  tag: string,
  clock: Clock | undefined,
  wake: () => void,
): StoreContext {
  const lostWrites = new LostWriteDetector()
  return {
    connection,
    tag,
    lostWrites,
    now: () => (clock ? String(Math.floor(clock.now())) : ''),
    async runMove(script, args) {
      const reply = (await connection.run(script, args)) as [number, number, ...Reply[]]
      const [moves, woke, ...rest] = reply
      lostWrites.observe(moves)
      if (woke === 1) wake()
      return rest
    },
  }
}

/** How often an operation reads letters again that changed concurrently. */
export const maxReads = 5

/** An upper bound for durations and limits. */
export const maxNumber = 1e15

/** A duration or limit for a script. */
export function numberText(value: number): string {
  return String(Math.min(value, maxNumber))
}
