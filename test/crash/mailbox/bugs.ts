import { systemClock } from '../../../src/clock/clock.ts'
import type { Message } from '../../../src/mailbox.ts'
import { pause } from '../child.ts'
import type { ViolationKind } from './judge.ts'
import { overlaid } from './overlaid.ts'
import type { Failpoint } from './plan.ts'
import { overWorld, type World } from './world.ts'

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
  /** What brings it to light, if not everything does. */
  fault?: Failpoint
  plant: (world: World) => World
}

const same = <T>(one: T): T => one

/** Mistakes that consumers of queues have made, planted over sound ones. A crash test that does not catch them proves nothing. */
export const bugs: Record<BugName, Bug> = {
  /** Whoever dies in between has neither the message nor its dead letter. */
  'ack-before-keep': {
    shows: ['lost'],
    fault: { act: 'kill', point: 'before-keep' },
    plant: (world) => {
      const held = new Map<string, Message>()
      return overWorld(world, {
        message: (message) => (held.set(message.id, message), message),
        keep: (inner) => async (dead, thrown) => {
          await held.get(dead.messageId)?.acknowledge()
          await pause(systemClock.random() * 20)
          await inner(dead, thrown)
        },
      })
    },
  },
  /** Nobody asks whether somebody else has it by now. */
  'keep-without-fence': {
    shows: ['unfenced'],
    fault: { act: 'stop', point: 'last-failure' },
    plant: (world) =>
      overWorld(world, {
        message: (message) => overlaid(message, { extend: () => Promise.resolve() }),
        keep: same,
      }),
  },
  /** A repeat is not known as one. */
  'keep-without-key': {
    shows: ['twice_dead'],
    fault: { act: 'kill', point: 'after-keep' },
    plant: (world) =>
      overWorld(world, {
        message: same,
        keep: (inner) => (dead, thrown) =>
          inner({ ...dead, replays: Math.floor(systemClock.random() * 1e6) }, thrown),
      }),
  },
  /** What is given back at a shutdown counts as failed. */
  'release-as-failure': {
    shows: ['early_dead'],
    fault: { act: 'term', point: 'mid-handler' },
    plant: (world) =>
      overWorld(world, {
        message: (message) =>
          overlaid(message, {
            nack: (options = {}) => message.nack({ ...options, failed: true }),
          }),
        keep: same,
      }),
  },
  'drop-on-error': {
    shows: ['lost'],
    plant: (world) =>
      overWorld(world, {
        message: (message) =>
          overlaid(message, {
            nack: ({ failed = true } = {}) =>
              failed ? message.acknowledge() : message.nack({ failed }),
          }),
        keep: same,
      }),
  },
  /** Only what failed in an orderly way is counted, so that killers go on for ever. */
  'uncounted-deliveries': {
    shows: ['over_limit'],
    plant: (world) =>
      overWorld(world, {
        message: (message) => overlaid(message, { deliveries: message.failures + 1 }),
        keep: same,
      }),
  },
}
