import type { CaptureContext } from '../../src/capture/context.ts'
import type { OperationInput } from '../../src/capture/operation.ts'
import { RedriveError, type ErrorCode } from '../../src/errors.ts'
import { priorities } from '../../src/letter/letter.ts'
import { encodePayload } from '../../src/letter/payload.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import type { Dice } from './dice.ts'
import type { System } from './system.ts'
import { textOf } from './ledger.ts'
import { drawPlan, errors } from './plan.ts'
import { drawBackoff } from './settings.ts'
import type { SimProcess } from './sim-process.ts'

/** One capture of a client, so that the client can repeat it. */
interface Capture {
  operation: OperationInput
  error: Error
  context: CaptureContext
}

/** Expected error codes of a capture; all others are bugs. */
const allowed: readonly ErrorCode[] = [
  'STORE_UNAVAILABLE',
  'QUEUE_FULL',
  'VERSION_CONFLICT',
  'CLOSED',
]

/** Clients that capture failures, and repeat captures with an unknown outcome. */
export class Clients {
  readonly #system: System
  readonly #dice: Dice
  /** Captures with an id chosen by the client. */
  readonly #chosen: Capture[] = []
  #captures = 0

  constructor(system: System, dice: Dice) {
    this.#system = system
    this.#dice = dice
  }

  capture(process: SimProcess): void {
    const capture = this.#draw(process)
    if (capture.context.id !== undefined) this.#chosen.push(capture)
    void this.#send(process, capture)
  }

  captureMany(process: SimProcess): void {
    const captures = Array.from({ length: this.#dice.whole(2, 4) }, () => this.#draw(process))
    for (const { operation, context } of captures)
      this.#system.oracle.additions.captureTried(
        encodePayload(operation.payload, context.contentType).bytes,
      )
    void this.#settle(process.dlq!.enqueueAll(captures), (ids) => {
      for (const [index, id] of ids.entries()) this.#acknowledged(captures[index]!, id)
    })
  }

  /** Captures through the guarded function, which does not return the letter. */
  captureGuarded(process: SimProcess): void {
    if (!process.guarded) return this.capture(process)
    const n = this.#plan()
    const input = { n }
    process.firstCallError = this.#error()
    this.#system.oracle.additions.captureTried(encodePayload(input).bytes)
    void this.#settle(process.guarded(input), () => {
      this.#system.oracle.additions.acknowledge(textOf(encodePayload(input).bytes))
    })
  }

  /** Repeats an id: with the same bytes, or by mistake with others. */
  captureAgain(process: SimProcess): void {
    const first = this.#chosen.at(-this.#dice.whole(1, 5))
    if (!first) return this.capture(process)
    const again = this.#dice.chance(0.8)
      ? first
      : { ...first, operation: { ...first.operation, payload: this.#payload(this.#plan()) } }
    void this.#send(process, again)
  }

  /** Captures a letter that succeeds at once. Resolves with its id once it is stored. */
  canary(process: SimProcess, queue: string): Promise<string | undefined> {
    const n = ++this.#captures
    this.#system.plans.set(n, { n, kind: 'fine', workMs: 0, failures: 0 })
    const operation = { type: queue, payload: { n } }
    this.#system.oracle.additions.captureTried(encodePayload(operation.payload).bytes)
    return process.dlq!.enqueue(operation, errors.network()).then(
      ({ id }) => id,
      () => undefined,
    )
  }

  async #send(process: SimProcess, capture: Capture): Promise<void> {
    const { operation, error, context } = capture
    const { bytes } = encodePayload(operation.payload, context.contentType)
    this.#system.oracle.additions.captureTried(bytes)
    const kept = process.dlq!.enqueue(operation, error, context)
    await this.#settle(
      kept,
      (letter) => this.#acknowledged(capture, letter.id),
      context.id,
      textOf(bytes),
    )
  }

  async #settle<T>(
    promise: Promise<T>,
    done: (value: T) => void,
    id?: string,
    text?: string,
  ): Promise<void> {
    const { scheduler, coverage, oracle } = this.#system
    try {
      done(await promise)
    } catch (error) {
      const code = error instanceof RedriveError ? error.code : undefined
      scheduler.log(`capture failed: ${code ?? String(error)}`)
      const conflict =
        code === 'ID_CONFLICT' && id !== undefined && oracle.additions.isTaken(id, text)
      if (conflict) coverage.record('id conflict')
      if (!conflict && (!code || !allowed.includes(code)))
        scheduler.violate('UP', `a capture failed with ${String(error)}`)
    }
  }

  #acknowledged({ operation, context }: Capture, id: string): void {
    const bytes = encodePayload(operation.payload, context.contentType).bytes
    this.#system.oracle.additions.acknowledge(
      context.dedupeKey === undefined ? textOf(bytes) : undefined,
      id,
    )
  }

  #draw(process: SimProcess): Capture {
    const dice = this.#dice
    const { setup, oracle } = this.#system
    const known = [...oracle.ledger.letters.keys()].slice(-6)
    const bytes = dice.chance(0.3)
    const n = this.#plan()
    const maybe = <T>(probability: number, value: () => T): T | undefined =>
      dice.chance(probability) ? value() : undefined
    const context = {
      id: maybe(0.3, () => process.clock.id()),
      lane: maybe(0.3, () => dice.pick(['a', 'b'])),
      dedupeKey: maybe(0.2, () => dice.pick(['k1', 'k2'])),
      dependsOn: maybe(known.length > 0 ? 0.15 : 0, () => [
        dice.pick(known),
        ...(dice.chance(0.3) ? [dice.pick(known)] : []),
      ]),
      maxRetries: maybe(0.2, () => dice.whole(0, 3)),
      priority: maybe(0.3, () => dice.pick(priorities)),
      policy: maybe(0.2, () => drawBackoff(dice, setup.leaseMs)),
      expiresAt: maybe(0.1, () =>
        toTimestamp(process.clock.now() + setup.leaseMs * dice.between(0, 5)),
      ),
      contentType: bytes ? 'application/octet-stream' : undefined,
      tags: maybe(0.2, () => [dice.pick(['blue', 'red'])]),
    }
    return {
      operation: {
        type: dice.pick(setup.queues),
        payload: bytes ? Buffer.from(JSON.stringify(this.#payload(n))) : this.#payload(n),
      },
      error: this.#error(),
      context: Object.fromEntries(
        Object.entries(context).filter(([, value]) => value !== undefined),
      ),
    }
  }

  #plan(): number {
    const n = ++this.#captures
    this.#system.plans.set(n, drawPlan(n, this.#dice, this.#system.setup))
    return n
  }

  #payload(n: number): { n: number; pad: string } {
    return { n, pad: 'x'.repeat(this.#dice.whole(0, 20)) }
  }

  #error(): Error {
    const kind = this.#dice.weighted({ network: 8, odd: 2, permanent: 1, limited: 1 })
    return errors[kind]()
  }
}
