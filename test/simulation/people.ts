import { RedriveError, type ErrorCode } from '../../src/errors.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { DeadLetterQueue } from '../../src/queue.ts'
import type { Dice } from './dice.ts'
import type { House } from './house.ts'
import { errors } from './plan.ts'
import type { SimProcess } from './sim-process.ts'

type Act = (dlq: DeadLetterQueue, letter: DeadLetter, dice: Dice) => Promise<DeadLetter>

const by = 'ada'

/** What a person may do to a letter. */
const acts = {
  retry: (dlq, { id }) => dlq.retry(id, by),
  resolve: (dlq, { id }) => dlq.resolve(id, by),
  fail: (dlq, { id }) => dlq.fail(id, errors.network(), by),
  park: (dlq, { id }) => dlq.park(id, 'to be looked at', by),
  review: (dlq, { id }, dice) =>
    dlq.review(id, { decision: dice.pick(['requeue', 'resolve', 'discard'] as const), by }),
  archive: (dlq, { id }) => dlq.archive(id, by),
  restore: (dlq, { id }) => dlq.restore(id, by),
  remove: (dlq, { id }) => dlq.remove(id, by),
  edit: (dlq, { id, payload }, dice) => {
    const priority = dice.pick(['high', 'low'] as const)
    if (dice.chance(0.5)) return dlq.edit(id, { priority, reason: 'urgency', by })
    const { n } = JSON.parse(Buffer.from(payload.bytes).toString()) as { n: number }
    return dlq.edit(id, { payload: { n, edited: dice.whole(1, 1000) }, reason: 'a typo', by })
  },
  undoEdit: (dlq, { id }) => dlq.undoEdit(id, by),
} satisfies Record<string, Act>

/** Somebody else was faster, the store did not answer, or the letter does not allow it. Anything else is a bug. */
const allowed: readonly ErrorCode[] = [
  'LETTER_NOT_FOUND',
  'ILLEGAL_MOVE',
  'VERSION_CONFLICT',
  'STORE_UNAVAILABLE',
  'CLOSED',
]

/** People: they act on letters through any process, in the middle of everything. */
export class People {
  readonly #house: House
  readonly #dice: Dice

  constructor(house: House, dice: Dice) {
    this.#house = house
    this.#dice = dice
  }

  act(process: SimProcess): void {
    const { ledger } = this.#house.oracle
    const { world } = this.#house
    const ids = [...ledger.letters.keys()]
    const id = this.#dice.chance(0.5) ? this.#dice.pick(ids) : ids.at(-this.#dice.whole(1, 5))
    const known = id === undefined ? undefined : ledger.letters.get(id)
    if (!known) return
    const kind = this.#dice.pick(Object.keys(acts) as (keyof typeof acts)[])
    world.log(`ada wants to ${kind} ${known.name} through ${process.name}`)
    void this.#settle(kind, known.name, acts[kind](process.dlq!, known.letter, this.#dice))
  }

  /** Empties a queue of what is in one state, once counted. */
  async clear(process: SimProcess): Promise<void> {
    const { setup, oracle, world } = this.#house
    const filter = {
      queue: this.#dice.pick(setup.queues),
      state: this.#dice.pick(['parked', 'exhausted', 'resolved'] as const),
    }
    const confirm = oracle.ledger.letters.count(
      ({ queue, state }) => queue === filter.queue && state === filter.state,
    )
    world.log(`ada clears ${confirm} ${filter.state} of ${filter.queue} through ${process.name}`)
    try {
      await process.dlq!.clear(filter, { confirm, by })
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : undefined
      if (code !== 'INVALID_INPUT' && code !== 'STORE_UNAVAILABLE' && code !== 'CLOSED')
        world.violate('UP', `clear failed with ${String(error)}`)
    }
  }

  async #settle(kind: keyof typeof acts, name: string, acting: Promise<DeadLetter>): Promise<void> {
    const { ledger } = this.#house.oracle
    const { world } = this.#house
    try {
      const letter = await acting
      const now = ledger.letters.get(letter.id)
      const known = now ?? ledger.gone.get(letter.id)
      const happened =
        kind === 'remove'
          ? // By the time of the answer another letter may have come under the same id.
            ledger.gone.has(letter.id) || (now !== undefined && now.name !== name)
          : known?.versions.has(letter.version)
      if (!happened)
        world.violate(
          'LOSS',
          `${kind} of ${ledger.nameOf(letter.id)} was acknowledged and did not happen`,
        )
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : undefined
      world.log(`ada could not ${kind}: ${code ?? String(error)}`)
      const nothingToUndo = kind === 'undoEdit' && code === 'INVALID_INPUT'
      if (!nothingToUndo && (!code || !allowed.includes(code)))
        world.violate('UP', `${kind} failed with ${String(error)}`)
    }
  }
}
