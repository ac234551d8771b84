import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { commandsFor, compare, landmarks, type Real } from './mailbox-commands.ts'
import { MailboxModel } from './mailbox-model.ts'
import type { ClosableMailboxBench } from './run-mailbox-contract.ts'

export interface ModelOptions {
  /** Default: 300, on a real broker 10. */
  numRuns?: number
  seed?: number
  /**
   * The broker uses real time, so messages close to their expiry are not checked. Default: a fake
   * clock.
   */
  realTime?: boolean
}

/** Maximum clock difference to a broker. */
const marginMs = 400

/**
 * Applies the same random steps to a mailbox and to the model, and compares them within its powers.
 */
export function runMailboxModel(
  name: string,
  open: () => Promise<ClosableMailboxBench>,
  options: ModelOptions = {},
): void {
  const { realTime = false, numRuns = realTime ? 10 : 300, seed } = options
  describe(`${name} behaves like the model`, () => {
    it(`in ${numRuns} random runs`, async () => {
      const reached = new Set<string>()
      const commands = fc.commands(commandsFor(realTime), {
        size: 'max',
        maxCommands: realTime ? 30 : 60,
      })
      const property = fc.asyncProperty(commands, (run) => drive(run, open, realTime, reached))
      // No shrinking on a real broker: it takes too long.
      const shrinking = realTime ? { endOnFailure: true } : {}
      await fc.assert(property, { numRuns, ...shrinking, ...(seed === undefined ? {} : { seed }) })
      if (!realTime && numRuns >= 100) {
        const missed = landmarks.filter((landmark) => !reached.has(landmark))
        assert.deepEqual(missed, [], 'the runs covered all required cases')
      }
    }, 300_000)
  })
}

async function drive(
  run: Iterable<fc.AsyncCommand<MailboxModel, Real>>,
  open: () => Promise<ClosableMailboxBench>,
  realTime: boolean,
  reached: Set<string>,
): Promise<void> {
  const bench = await open()
  const { mailbox } = bench
  const real: Real = { bench, mailbox, realTime, reached, given: [], sent: [], closed: new Set() }
  const model = new MailboxModel(bench.now(), realTime ? marginMs : 0)
  try {
    await fc.asyncModelRun(() => ({ model, real }), run)
    await compare(model, real)
  } finally {
    await bench.close()
  }
}
