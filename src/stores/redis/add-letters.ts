import { Batcher } from '../../backends/batcher.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Argument } from '../../backends/redis/connection.ts'
import type { AddResult, Capacity, KeepResult, StoredLetter } from '../../store.ts'
import { sendInChunks, maxScriptItems } from './chunks.ts'
import { maxReads, costOf, type StoreContext } from './context.ts'
import { keepArguments } from './packing.ts'
import { scripts } from './scripts.ts'
import { maxInFlight, splitReplies } from './batches.ts'
import { addArguments, addedOf, type Added } from './script-arguments.ts'

export type Add = (letters: readonly DeadLetter[], capacity?: Capacity) => Promise<AddResult[]>

export function createAdder(context: StoreContext): Add {
  const adding = new Batcher<Argument[][], Added[]>(
    { maxInFlight, maxBatchCost: maxScriptItems },
    async (requests) =>
      splitReplies(
        requests,
        await context.runMove(scripts.add, [context.now(), ...requests.flat(2)]),
        addedOf,
      ),
  )

  /**
   * More letters must be evicted than one script may evict: they are evicted in steps, and then the
   * letter is added. The excess is computed again each time, since room made for one letter serves
   * all letters of the batch.
   */
  const makeRoom = async (request: Argument[], maxItems: number): Promise<AddResult> => {
    let evicted = 0
    for (let looks = 0; looks < maxReads; looks++) {
      const [result] = await adding.call([request])
      if (result!.kind === 'added')
        return { kind: 'added', evicted: evicted + (result!.evicted ?? 0) }
      if (result!.kind !== 'overfull') return result!
      let left = result!.excess
      while (left > 0) {
        const count = String(Math.min(left, maxScriptItems))
        const [gone] = (await context.runMove(scripts.evict, [count, String(maxItems)])) as [number]
        evicted += gone
        left = gone === 0 ? 0 : left - gone
      }
    }
    return { kind: 'full' }
  }

  return (letters, capacity) =>
    sendInChunks(
      letters,
      maxScriptItems,
      async (some) => {
        const requests = some.map((letter) => addArguments(letter, capacity))
        const added = await adding.call(
          requests,
          some.reduce((sum, letter) => sum + letterCost(letter), 0),
        )
        const results: AddResult[] = []
        for (const [at, one] of added.entries())
          results.push(
            one.kind === 'overfull' ? await makeRoom(requests[at]!, capacity!.maxItems) : one,
          )
        return results
      },
      letterCost,
    )
}

const letterCost = ({ payload }: DeadLetter): number => costOf(payload.bytes.length)

/** Stores letters of another store unchanged. */
export function keepLetters(
  context: StoreContext,
  letters: readonly StoredLetter[],
): Promise<KeepResult[]> {
  return sendInChunks(
    letters,
    maxScriptItems,
    async (some) => {
      const args = [context.now(), ...some.flatMap(keepArguments)]
      const replies = await context.runMove(scripts.keep, args)
      return replies.map((reply) => (reply === 1 ? 'written' : 'conflict'))
    },
    ({ letter, original }) => letterCost(letter) + costOf(original?.bytes.length ?? 0),
  )
}
