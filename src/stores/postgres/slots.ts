import type { Clock } from '../../clock/clock.ts'
import { drawSlot, tidyCounters } from './counters.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'

/** Transactions after which some of the counts are tidied. */
const tidyEvery = 200

/** The slots of the counters that one store uses: as many as it has transactions at once, so that none waits for another. */
export interface Slots {
  use<T>(work: (slot: number) => Promise<T>): Promise<T>
  idle(): Promise<unknown>
}

export function slotsOf(connection: PostgresConnection, clock: Clock): Slots {
  const free: number[] = []
  let uses = 0
  let place: Awaited<ReturnType<typeof tidyCounters>>
  let tidying: Promise<unknown> | undefined
  const tidy = async (slot: number): Promise<void> => {
    try {
      place = await tidyCounters(connection, slot, place)
    } catch {
      // The counts add up all the same; the next turn tries again.
    } finally {
      free.push(slot)
      tidying = undefined
    }
  }
  const take = (): number => free.pop() ?? drawSlot(clock)
  return {
    async use(work) {
      const slot = take()
      try {
        return await work(slot)
      } finally {
        free.push(slot)
        if (++uses % tidyEvery === 0) tidying ??= tidy(take())
      }
    },
    idle: async () => tidying,
  }
}
