import { Batcher, splitResults } from '../../backends/batcher.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { AddResult, Capacity } from '../../store.ts'
import { resolved } from '../rows/codes.ts'
import { at } from '../rows/columns.ts'
import {
  addInTransaction,
  addPlainly,
  addRequestOf,
  candidatesOf,
  isPlain,
  type AddRequest,
} from './add.ts'
import { runBatch, sendInParts } from './batches.ts'
import type { StoreContext } from './context.ts'

/** The maximum cost of a batch. A letter costs 1, and 1 more for each 32 KiB of its payload. */
const maxCost = 500
const bytesPerCost = 32 * 1024

const maxInFlight = 2

type AddBatcher = Batcher<AddRequest[], AddResult[]>

/**
 * Adds the letters of concurrent calls in batches: plain letters in one statement, others in a
 * transaction. Batches are separate, so that one fails as a whole and its calls can be repeated.
 */
export class Adder {
  readonly #context: StoreContext
  readonly #plain: AddBatcher
  readonly #others: AddBatcher

  constructor(context: StoreContext) {
    this.#context = context
    const options = { maxInFlight, maxBatchCost: maxCost }
    const batcherOf = (run: (all: AddRequest[]) => Promise<AddResult[]>): AddBatcher =>
      new Batcher(options, (calls) =>
        runBatch(calls, async (some) => splitResults(await run(some.flat()), some)),
      )
    this.#plain = batcherOf((all) => addPlainly(context, all))
    this.#others = batcherOf((all) => this.#addOthers(all))
  }

  add(letters: readonly DeadLetter[], capacity: Capacity | undefined): Promise<AddResult[]> {
    const isOrdered = capacity !== undefined || letters.some(needsOrder) || hasTwice(letters)
    const addPart = (some: readonly DeadLetter[]): Promise<AddResult[]> =>
      this.#addPart(some, capacity)
    const cost = ({ payload }: DeadLetter): number => costOf(payload.bytes.byteLength)
    return sendInParts(letters, maxCost, addPart, cost, isOrdered ? 1 : maxInFlight)
  }

  /** Plain letters first: the others may depend on them. */
  async #addPart(
    letters: readonly DeadLetter[],
    capacity: Capacity | undefined,
  ): Promise<AddResult[]> {
    const wanted = letters.map((letter) => addRequestOf(letter, capacity))
    const results = new Map<AddRequest, AddResult>()
    const isOrdered = hasTwice(letters)
    for (const [batcher, some] of [
      [this.#plain, wanted.filter((one) => !isOrdered && isPlain(one))],
      [this.#others, wanted.filter((one) => isOrdered || !isPlain(one))],
    ] as const) {
      if (some.length === 0) continue
      const cost = some.reduce((sum, { letter }) => sum + costOf(letter.size), 0)
      for (const [n, result] of (await batcher.call(some, cost)).entries())
        results.set(some[n]!, result)
    }
    return wanted.map((one) => results.get(one)!)
  }

  #addOthers(all: readonly AddRequest[]): Promise<AddResult[]> {
    const add = async (some: readonly AddRequest[]): Promise<AddResult[]> =>
      addInTransaction(this.#context, await candidatesOf(this.#context, some))
    return all.some(mayEvictOwnLetters) ? sendInParts(all, 1, add) : add(all)
  }
}

const costOf = (bytes: number): number => 1 + Math.floor(bytes / bytesPerCost)

/** Whether the result may depend on the letters before. */
const needsOrder = ({ dedupeKey, dependsOn }: DeadLetter): boolean =>
  dedupeKey !== undefined || dependsOn !== undefined

const hasTwice = (letters: readonly DeadLetter[]): boolean =>
  letters.length > 1 && new Set(letters.map(({ id }) => id)).size < letters.length

/** Whether making room may evict a letter that another letter of the batch adds or depends on. */
const mayEvictOwnLetters = ({ letter, capacity, dependsOn }: AddRequest): boolean =>
  capacity?.overflow === 'evict-resolved' &&
  (letter.row[at.state] === resolved || dependsOn.length > 0)
