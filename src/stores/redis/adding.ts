import { gatherer } from '../../kept/gather.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Argument } from '../../redis/wire.ts'
import type { AddResult, Capacity, KeepResult, StoredLetter } from '../../store.ts'
import { inChunks, maxScriptItems } from './chunks.ts'
import { maxLooks, weightOf, type Desk } from './desk.ts'
import { keepArguments } from './packing.ts'
import { scripts } from './scripts.ts'
import { maxBatches, together } from './together.ts'
import { addArguments, addedOf, type Added } from './writing.ts'

export type Add = (letters: readonly DeadLetter[], capacity?: Capacity) => Promise<AddResult[]>

export function adder(desk: Desk): Add {
  const adding = gatherer<Argument[][], Added[]>(
    { maxBatches, maxWeight: maxScriptItems },
    async (asks) =>
      together(asks, await desk.moving(scripts.add, [desk.now(), ...asks.flat(2)]), addedOf),
  )

  /** Far too many letters for what the limit is now: they go in steps, and then the new one comes in. */
  const makeRoom = async (ask: Argument[], excess: number): Promise<AddResult> => {
    let evicted = 0
    let left = excess
    for (let looks = 0; looks < maxLooks; looks++) {
      while (left > 0) {
        const count = String(Math.min(left, maxScriptItems))
        const [gone] = (await desk.moving(scripts.evict, [count])) as [number]
        evicted += gone
        left = gone === 0 ? 0 : left - gone
      }
      const [result] = await adding.call([ask])
      if (result!.kind === 'crowded') left = result!.excess
      else if (result!.kind !== 'added') return result!
      else return { kind: 'added', evicted: evicted + (result!.evicted ?? 0) }
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
          results.push(one.kind === 'crowded' ? await makeRoom(asks[at]!, one.excess) : one)
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
