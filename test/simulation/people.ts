import { RedriveError, type ErrorCode } from '../../src/errors.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Dice } from './dice.ts'
import type { System } from './system.ts'
import { errors } from './plan.ts'
import type { SimProcess } from './sim-process.ts'

type PersonAction = (dlq: DeadLetterQueue, letter: DeadLetter, dice: Dice) => Promise<DeadLetter>

const by = 'ada'

/** Actions of a person on a letter. */
const actions = {
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
} satisfies Record<string, PersonAction>

/** Expected errors: a conflict, an unavailable store, or an illegal move. All others are bugs. */
const allowed: readonly ErrorCode[] = [
  'LETTER_NOT_FOUND',
  'ILLEGAL_MOVE',
  'VERSION_CONFLICT',
  'STORE_UNAVAILABLE',
  'CLOSED',
]

/** People who act on letters through any process, at any time. */
export class People {
  readonly #system: System
  readonly #dice: Dice

  constructor(system: System, dice: Dice) {
    this.#system = system
    this.#dice = dice
  }

  act(process: SimProcess): void {
    const { ledger } = this.#system.oracle
    const { scheduler } = this.#system
    const ids = [...ledger.letters.keys()]
    const id = this.#dice.chance(0.5) ? this.#dice.pick(ids) : ids.at(-this.#dice.whole(1, 5))
    const known = id === undefined ? undefined : ledger.letters.get(id)
    if (!known) return
    const kind = this.#dice.pick(Object.keys(actions) as (keyof typeof actions)[])
    scheduler.log(`ada wants to ${kind} ${known.name} through ${process.name}`)
    void this.#settle(kind, known.name, actions[kind](process.dlq!, known.letter, this.#dice))
  }

  /** Clears the letters of a queue in one state, confirmed by their count. */
  async clear(process: SimProcess): Promise<void> {
    const { setup, oracle, scheduler } = this.#system
    const filter = {
      queue: this.#dice.pick(setup.queues),
      state: this.#dice.pick(['parked', 'exhausted', 'resolved'] as const),
    }
    const confirm = oracle.ledger.letters.count(
      ({ queue, state }) => queue === filter.queue && state === filter.state,
    )
    scheduler.log(
      `ada clears ${confirm} ${filter.state} of ${filter.queue} through ${process.name}`,
    )
    try {
      await process.dlq!.clear(filter, { confirm, by })
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : undefined
      if (code !== 'INVALID_INPUT' && code !== 'STORE_UNAVAILABLE' && code !== 'CLOSED')
        scheduler.violate('UP', `clear failed with ${String(error)}`)
    }
  }

  async #settle(
    kind: keyof typeof actions,
    name: string,
    pendingAction: Promise<DeadLetter>,
  ): Promise<void> {
    const { ledger } = this.#system.oracle
    const { scheduler } = this.#system
    try {
      const letter = await pendingAction
      const now = ledger.letters.get(letter.id)
      const known = now ?? ledger.gone.get(letter.id)
      const happened =
        kind === 'remove'
          ? // By the time of the answer, another letter may have the same id.
            ledger.gone.has(letter.id) || (now !== undefined && now.name !== name)
          : known?.versions.has(letter.version)
      if (!happened)
        scheduler.violate(
          'LOSS',
          `${kind} of ${ledger.nameOf(letter.id)} was acknowledged and did not happen`,
        )
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : undefined
      scheduler.log(`ada could not ${kind}: ${code ?? String(error)}`)
      const nothingToUndo = kind === 'undoEdit' && code === 'INVALID_INPUT'
      if (!nothingToUndo && (!code || !allowed.includes(code)))
        scheduler.violate('UP', `${kind} failed with ${String(error)}`)
    }
  }
}
