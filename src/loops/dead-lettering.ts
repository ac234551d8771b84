import { RedriveError } from '../errors.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { decideDeadLetter, DLQPolicy, type Delivered } from '../policy/dlq-policy.ts'
import { destinationOf, type Destination } from './destination.ts'
import type { Tell } from './events.ts'
import { isSameMailbox } from './runnable.ts'

/** What becomes of messages that fail again and again. */
export interface DeadLettering {
  /** Where they are kept: another mailbox, or letters of a queue. */
  to: Mailbox | Destination
  /** When that is. Unless said, after 5 deliveries. */
  policy?: DLQPolicy
  /** Sends some of them elsewhere. Undefined: to `to`. */
  route?: (error: unknown, message: Message) => Mailbox | Destination | undefined
}

/** What a policy of your own sees of a message. */
export interface DeliveredMessage extends Delivered {
  message: Message
  /** The decoded body. */
  request: unknown
}

/** Decides at a mailbox whether a message is dead, and where it goes. Survives policies and routes that throw. */
export class DeadLetterOffice {
  readonly destination: Destination
  readonly #policy: DLQPolicy
  readonly #route: DeadLettering['route']
  readonly #source: Mailbox
  readonly #tell: Tell

  constructor({ to, policy = new DLQPolicy(), route }: DeadLettering, source: Mailbox, tell: Tell) {
    this.destination = destinationOf(to)
    this.#policy = policy
    this.#route = route
    this.#source = source
    this.#tell = tell
    refuseCircle(source, this.destination)
    this.destination.addSource?.(source)
  }

  /** Came so often that it is not run once more: it may end its worker before anything can be caught. */
  overDelivered({ deliveries, failures }: Message): boolean {
    // A delivery that ended with a failure did not end its worker, and one that was given back untried is not among them. Where the broker
    // cannot tell, each may have.
    const unexplained = this.#source.powers.remembers ? deliveries - failures : deliveries
    try {
      return this.#policy.overDelivered(unexplained)
    } catch (error) {
      this.#trouble('overDelivered', error)
      return unexplained > this.#policy.maxDeliveryCount
    }
  }

  /** Deliveries that ended without a failure, because a worker was stopped, are not held against the message. */
  isDead(message: Message, request: unknown, error: unknown): boolean {
    const delivered: DeliveredMessage = { deliveryCount: message.failures + 1, message, request }
    const { deadLetter, problem } = decideDeadLetter(this.#policy, delivered, error)
    if (problem !== undefined) this.#trouble('shouldDeadLetter', problem)
    return deadLetter
  }

  destinationFor(error: unknown, message: Message): Destination {
    try {
      const routed = this.#route?.(error, message)
      if (!routed) return this.destination
      const destination = destinationOf(routed)
      refuseCircle(this.#source, destination)
      destination.addSource?.(this.#source)
      return destination
    } catch (problem) {
      this.#trouble('route', problem)
      return this.destination
    }
  }

  #trouble(part: string, error: unknown): void {
    this.#tell({ type: 'trouble', during: `${part} of ${this.#source.name}`, error })
  }
}

/** A dead letter that lands where it came from would be received again. */
export function refuseCircle(source: Mailbox, { mailbox }: Destination): void {
  if (mailbox && isSameMailbox(source, mailbox))
    throw new RedriveError(
      'INVALID_CONFIG',
      `${source.name} cannot keep its own dead letters: give another mailbox, such as ${source.name}-dlq`,
    )
}
