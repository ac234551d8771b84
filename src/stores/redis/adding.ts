import { Batcher } from '../../backends/batcher.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Argument } from '../../backends/redis/connection.ts'
import type { AddResult, Capacity, KeepResult, StoredLetter } from '../../store.ts'
import { inChunks, maxScriptItems } from './chunks.ts'
import { maxLooks, weightOf, type Desk } from './desk.ts'
import { keepArguments } from './packing.ts'
import { scripts } from './scripts.ts'
import { maxInFlight, together } from './together.ts'
import { addArguments, addedOf, type Added } from './writing.ts'

export type Add = (letters: readonly DeadLetter[], capacity?: Capacity) => Promise<AddResult[]>

export function adder(desk: Desk): Add {
  const adding = new Batcher<Argument[][], Added[]>(
    { maxInFlight, maxBatchCost: maxScriptItems },
    async (asks) =>
      together(asks, await desk.moving(scripts.add, [desk.now(), ...asks.flat(2)]), addedOf),
  )

  /**
   * Far too many letters for what the limit is now: they go in steps, and then the new one comes in. It is asked for anew each
   * time, since what makes room for one of them makes it for all that come along.
   */
  const makeRoom = async (ask: Argument[], maxItems: number): Promise<AddResult> => {
    let evicted = 0
    for (let looks = 0; looks < maxLooks; looks++) {
      const [result] = await adding.call([ask])
      if (result!.kind === 'added')
        return { kind: 'added', evicted: evicted + (result!.evicted ?? 0) }
      if (result!.kind !== 'crowded') return result!
      let left = result!.excess
      while (left > 0) {
        const count = String(Math.min(left, maxScriptItems))
        const [gone] = (await desk.moving(scripts.evict, [count, String(maxItems)])) as [number]
        evicted += gone
        left = gone === 0 ? 0 : left - gone
      }
    }
    return { kind: 'full' }
  }

  return (letters, capacity) =>
    inChunks(
      letters,
      maxScriptItems,
      async (some) => {
        const asks = some.map((letter) => addArguments(letter, capacity))
        const added = await adding.call(
          asks,
          some.reduce((sum, letter) => sum + letterWeight(letter), 0),
        )
        const results: AddResult[] = []
        for (const [at, one] of added.entries())
          results.push(one.kind === 'crowded' ? await makeRoom(asks[at]!, capacity!.maxItems) : one)
        return results
      },
      letterWeight,
    )
}

const letterWeight = ({ payload }: DeadLetter): number => weightOf(payload.bytes.length)

/** Letters as they come from another store. */
export function keepLetters(desk: Desk, letters: readonly StoredLetter[]): Promise<KeepResult[]> {
  return inChunks(
    letters,
    maxScriptItems,
    async (some) => {
      const args = [desk.now(), ...some.flatMap(keepArguments)]
      const replies = await desk.moving(scripts.keep, args)
      return replies.map((reply) => (reply === 1 ? 'written' : 'conflict'))
    },
    ({ letter, original }) => letterWeight(letter) + weightOf(original?.bytes.length ?? 0),
  )
}
