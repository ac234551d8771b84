import { systemClock } from '../../../src/clock/clock.ts'
import type { Message } from '../../../src/mailbox.ts'
import { pause } from '../child.ts'
import type { ViolationKind } from './verify.ts'
import { override } from '../override.ts'
import type { Failpoint } from './plan.ts'
import { wrapLoopParts, type LoopParts } from './loop-parts.ts'

export const bugNames = [
  'ack-before-keep',
  'keep-without-fence',
  'keep-without-key',
  'release-as-failure',
  'drop-on-error',
  'uncounted-deliveries',
] as const
export type BugName = (typeof bugNames)[number]

interface Bug {
  /** The violations of which at least one must be found. */
  shows: readonly ViolationKind[]
  /** The failpoint that reveals the bug, if it needs one. */
  fault?: Failpoint
  plant: (parts: LoopParts) => LoopParts
}

const identity = <T>(value: T): T => value

/**
 * Known mistakes of queue consumers, planted over correct ones. A crash test that misses them
 * proves nothing.
 */
export const bugs: Record<BugName, Bug> = {
  /** A process that dies in between leaves neither the message nor its dead letter. */
  'ack-before-keep': {
    shows: ['lost'],
    fault: { act: 'kill', point: 'before-keep' },
    plant: (parts) => {
      const held = new Map<string, Message>()
      return wrapLoopParts(parts, {
        message: (message) => (held.set(message.id, message), message),
        keep: (inner) => async (dead, thrown) => {
          await held.get(dead.messageId)?.acknowledge()
          await pause(systemClock.random() * 20)
          await inner(dead, thrown)
        },
      })
    },
  },
  /** Does not check whether another consumer has the delivery by now. */
  'keep-without-fence': {
    shows: ['unfenced'],
    fault: { act: 'stop', point: 'last-failure' },
    plant: (parts) =>
      wrapLoopParts(parts, {
        message: (message) => override(message, { extend: () => Promise.resolve() }),
        keep: identity,
      }),
  },
  /** A repeat is not recognised. */
  'keep-without-key': {
    shows: ['twice_dead'],
    fault: { act: 'kill', point: 'after-keep' },
    plant: (parts) =>
      wrapLoopParts(parts, {
        message: identity,
        keep: (inner) => (dead, thrown) =>
          inner({ ...dead, replays: Math.floor(systemClock.random() * 1e6) }, thrown),
      }),
  },
  /** A message released at a shutdown counts as failed. */
  'release-as-failure': {
    shows: ['early_dead'],
    fault: { act: 'term', point: 'mid-handler' },
    plant: (parts) =>
      wrapLoopParts(parts, {
        message: (message) =>
          override(message, {
            nack: (options = {}) => message.nack({ ...options, failed: true }),
          }),
        keep: identity,
      }),
  },
  'drop-on-error': {
    shows: ['lost'],
    plant: (parts) =>
      wrapLoopParts(parts, {
        message: (message) =>
          override(message, {
            nack: ({ failed = true } = {}) =>
              failed ? message.acknowledge() : message.nack({ failed }),
          }),
        keep: identity,
      }),
  },
  /** Counts only reported failures, so that a message that kills its process never ends. */
  'uncounted-deliveries': {
    shows: ['over_limit'],
    plant: (parts) =>
      wrapLoopParts(parts, {
        message: (message) => override(message, { deliveries: message.failures + 1 }),
        keep: identity,
      }),
  },
}
