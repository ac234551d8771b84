import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { deadLetterName } from '../mailboxes/dead-letter-name.ts'
import { decideDeadLetter, DLQPolicy, type Delivered } from '../policy/dlq-policy.ts'
import { describeValue, isMailbox, optionalFunction, wrongOption } from './check-options.ts'
import { isDestination } from './destination.ts'
import { destinationOf, type Destination } from './destination.ts'
import type { Tell } from './events.ts'
import { isSameMailbox } from './runnable.ts'

/** What becomes of messages that fail again and again. */
export interface DeadLettering {
  /** Where they are kept: another mailbox, or letters of a queue. Default: the mailbox of `policy`. */
  to?: Mailbox | Destination
  /** When that is. Default: after 5 deliveries. */
  policy?: DLQPolicy
  /** Sends some of them elsewhere. Undefined: to `to`. */
  route?: (error: unknown, message: Message) => Mailbox | Destination | undefined
}

const deadLetteringKeys = keysOf<DeadLettering>({ to: true, policy: true, route: true })
const renamedKeys = { mailbox: 'to', maxDeliveryCount: 'policy', max_delivery_count: 'policy' }

const bothShapes =
  'give dlq: new DLQPolicy({ mailbox: deadLetters, maxDeliveryCount: 5 }), or dlq: { to: deadLetters, policy: new DLQPolicy({ maxDeliveryCount: 5 }) }'

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

  /** Takes a policy that carries its mailbox, or an object that names both. */
  constructor(given: DeadLettering | DLQPolicy, source: Mailbox, tell: Tell) {
    const { to, policy = new DLQPolicy(), route } = readDeadLettering(given)
    this.destination = destinationOf(to, 'dlq', 'to')
    this.#policy = policy
    this.#route = route
    this.#source = source
    this.#tell = tell
    refuseCircle(source, this.destination)
    this.destination.addSource?.(source)
  }

  /**
   * Deliveries, with this one, that did not end with a failure that was caught: each earlier one may have ended its worker. What was
   * given back untried is not among them. A broker that does not count failures (`powers.remembers` is false) counts deliveries
   * only; there the failures that this process has seen, `failedHere`, are the ones known to be caught. A process that a message
   * ends takes that knowledge with it, so a message never ends more workers than the policy allows.
   */
  unexplained({ deliveries, failures }: Message, failedHere: number): number {
    return deliveries - (this.#source.powers.remembers ? failures : failedHere)
  }

  /** Whether a message with so many unexplained deliveries is dead-lettered without another run. */
  overDelivered(unexplained: number): boolean {
    try {
      return this.#policy.overDelivered(unexplained)
    } catch (error) {
      this.#reportError('overDelivered', error)
      return unexplained > this.#policy.maxDeliveryCount
    }
  }

  /** Deliveries that ended without a failure, because a worker was stopped, are not held against the message. */
  isDead(message: Message, request: unknown, error: unknown): boolean {
    const delivered: DeliveredMessage = { deliveryCount: message.failures + 1, message, request }
    const { deadLetter, problem } = decideDeadLetter(this.#policy, delivered, error)
    if (problem !== undefined) this.#reportError('shouldDeadLetter', problem)
    return deadLetter
  }

  destinationFor(error: unknown, message: Message): Destination {
    try {
      const routed = this.#route?.(error, message)
      if (!routed) return this.destination
      const destination = destinationOf(routed, 'dlq', 'route')
      refuseCircle(this.#source, destination)
      destination.addSource?.(this.#source)
      return destination
    } catch (problem) {
      this.#reportError('route', problem)
      return this.destination
    }
  }

  #reportError(part: string, error: unknown): void {
    this.#tell({ type: 'error', during: `${part} of ${this.#source.name}`, error })
  }
}

function readDeadLettering(given: DeadLettering | DLQPolicy): DeadLettering {
  if (given instanceof DLQPolicy) {
    const { mailbox } = given
    if (mailbox === undefined) throw invalid(`the DLQPolicy has no mailbox: ${bothShapes}`)
    return { to: mailbox as Mailbox | Destination, policy: given }
  }
  if (typeof given !== 'object' || given === null || isMailbox(given) || isDestination(given))
    throw invalid(`dlq says where dead messages go and when: ${bothShapes}`)
  checkKeys('dlq', given, deadLetteringKeys, { code: 'INVALID_CONFIG', renamed: renamedKeys })
  const { to, policy, route } = given
  if (policy !== undefined && !(policy instanceof DLQPolicy))
    throw wrongOption(
      'dlq',
      'policy',
      'a DLQPolicy: new DLQPolicy({ maxDeliveryCount: 5 })',
      policy,
    )
  optionalFunction('dlq', 'route', route)
  if (to === undefined && policy?.mailbox === undefined)
    throw invalid(`dlq has no place for dead messages: ${bothShapes}`)
  if (to !== undefined && policy?.mailbox !== undefined && policy.mailbox !== to)
    throw invalid(
      `dlq.to is ${nameOf(to)}, and the mailbox of its policy is ${nameOf(policy.mailbox)}: give one of them`,
    )
  return { ...given, to: to ?? (policy?.mailbox as Mailbox | Destination) }
}

function nameOf(place: unknown): string {
  const { name } = Object(place) as { name?: unknown }
  return typeof name === 'string' ? name : describeValue(place)
}

function invalid(problem: string): RedriveError {
  return new RedriveError('INVALID_CONFIG', problem)
}

/** A dead letter that lands where it came from would be received again. */
export function refuseCircle(source: Mailbox, { mailbox }: Destination): void {
  if (mailbox && isSameMailbox(source, mailbox))
    throw new RedriveError(
      'INVALID_CONFIG',
      `${source.name} cannot keep its own dead letters: give another mailbox, such as ${deadLetterName(source.name)}`,
    )
}
