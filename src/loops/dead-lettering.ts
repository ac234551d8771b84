import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { deadLetterName } from '../mailboxes/dead-letter-name.ts'
import { decideDeadLetter, DLQPolicy, type Delivered } from '../policy/dlq-policy.ts'
import { describeValue, isMailbox, optionalFunction, wrongOption } from './check-options.ts'
import { isDestination } from './destination.ts'
import { toDestination, type Destination } from './destination.ts'
import type { Emit } from './events.ts'
import { isSameMailbox } from './runnable.ts'

/** When a failing message becomes a dead letter, and where it is stored. */
export interface DeadLettering {
  /**
   * Where dead messages are stored: another mailbox, or letters of a queue. Default: the mailbox of
   * `policy`.
   */
  to?: Mailbox | Destination
  /** When a message is dead. Default: after 5 deliveries. */
  policy?: DLQPolicy
  /** Chooses another destination for a message. Undefined: `to`. */
  route?: (error: unknown, message: Message) => Mailbox | Destination | undefined
}

const deadLetteringKeys = keysOf<DeadLettering>({ to: true, policy: true, route: true })
const renamedKeys = { mailbox: 'to', maxDeliveryCount: 'policy', max_delivery_count: 'policy' }

const bothShapes =
  'use dlq: new DLQPolicy({ mailbox: deadLetters, maxDeliveryCount: 5 }), or dlq: { to: deadLetters, policy: new DLQPolicy({ maxDeliveryCount: 5 }) }'

/** What a custom policy gets to know about a message. */
export interface DeliveredMessage extends Delivered {
  message: Message
  /** The decoded body. */
  request: unknown
}

/** The message was delivered too often without a known result. */
export class MaxDeliveriesExceeded extends Error {
  constructor(deliveries: number, unexplained: number) {
    super(
      `max deliveries exceeded: of ${deliveries - 1} deliveries, ${unexplained - 1} ended without a known failure, so the message may kill its worker`,
    )
    this.name = 'MaxDeliveriesExceeded'
  }
}

/**
 * Decides whether a message of a mailbox is dead, and where it is stored. Policies and routes that
 * throw are reported and do no harm.
 */
export class DeadLetterRouter {
  readonly destination: Destination
  readonly #policy: DLQPolicy
  readonly #route: DeadLettering['route']
  readonly #source: Mailbox
  readonly #emit: Emit

  /** Accepts a policy with its mailbox, or an object with both. */
  constructor(given: DeadLettering | DLQPolicy, source: Mailbox, emit: Emit) {
    const { to, policy = new DLQPolicy(), route } = readDeadLettering(given)
    this.destination = toDestination(to, 'dlq', 'to')
    this.#policy = policy
    this.#route = route
    this.#source = source
    this.#emit = emit
    rejectCycle(source, this.destination)
    this.destination.addSource?.(source)
  }

  /**
   * The number of deliveries, this one included, that did not end with a caught failure: each
   * earlier one may have killed its worker. Deliveries that were released before they ran do not
   * count. A broker that does not count failures (`powers.remembers` is false) counts deliveries
   * only; there, `failedHere`, the failures that this process has seen, are the ones known to be
   * caught. A process that a message kills loses that knowledge, so a message never kills more
   * workers than the policy allows.
   */
  unexplained({ deliveries, failures }: Message, failedHere: number): number {
    return deliveries - (this.#source.powers.remembers ? failures : failedHere)
  }

  /**
   * Whether a message with this many unexplained deliveries is dead-lettered without another run.
   */
  overDelivered(unexplained: number): boolean {
    try {
      return this.#policy.overDelivered(unexplained)
    } catch (error) {
      this.#reportError('overDelivered', error)
      return unexplained > this.#policy.maxDeliveryCount
    }
  }

  /** Deliveries that ended without a failure, because a worker was stopped, do not count. */
  isDead(message: Message, request: unknown, error: unknown, failures = message.failures): boolean {
    const delivered: DeliveredMessage = { deliveryCount: failures + 1, message, request }
    const { deadLetter, problem } = decideDeadLetter(this.#policy, delivered, error)
    if (problem !== undefined) this.#reportError('shouldDeadLetter', problem)
    return deadLetter
  }

  /** Failures after which a message is dead, unless the policy decides otherwise. */
  get maxDeliveryCount(): number {
    return this.#policy.maxDeliveryCount
  }

  destinationFor(error: unknown, message: Message): Destination {
    try {
      const routed = this.#route?.(error, message)
      if (!routed) return this.destination
      const destination = toDestination(routed, 'dlq', 'route')
      rejectCycle(this.#source, destination)
      destination.addSource?.(this.#source)
      return destination
    } catch (problem) {
      this.#reportError('route', problem)
      return this.destination
    }
  }

  #reportError(part: string, error: unknown): void {
    this.#emit({ type: 'error', during: `${part} of ${this.#source.name}`, error })
  }
}

function readDeadLettering(given: DeadLettering | DLQPolicy): DeadLettering {
  if (given instanceof DLQPolicy) {
    const { mailbox } = given
    if (mailbox === undefined) throw invalid(`the DLQPolicy has no mailbox: ${bothShapes}`)
    return { to: mailbox as Mailbox | Destination, policy: given }
  }
  if (typeof given !== 'object' || given === null || isMailbox(given) || isDestination(given))
    throw invalid(`the option dlq must be a DLQPolicy or an object: ${bothShapes}`)
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
    throw invalid(`the option dlq has no destination for dead messages: ${bothShapes}`)
  if (to !== undefined && policy?.mailbox !== undefined && policy.mailbox !== to)
    throw invalid(
      `dlq.to is ${nameOf(to)}, but the mailbox of its policy is ${nameOf(policy.mailbox)}: set only one of them`,
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

/** Rejects a mailbox as its own destination: dead letters in it would be received again. */
export function rejectCycle(source: Mailbox, { mailbox }: Destination): void {
  if (mailbox && isSameMailbox(source, mailbox))
    throw new RedriveError(
      'INVALID_CONFIG',
      `${source.name} cannot store its own dead letters: use another mailbox, such as ${deadLetterName(source.name)}`,
    )
}
