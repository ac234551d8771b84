import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { commandsFor, compare, landmarks, type Real } from './mailbox-commands.ts'
import { MailboxModel } from './mailbox-model.ts'
import type { ClosableMailboxBench } from './run-mailbox-contract.ts'

export interface ModelOptions {
  /** 300 unless said, and 10 on a real broker. */
  numRuns?: number
  seed?: number
  /** Time is the broker's own, and what is so close to its hour is not judged. Without: the bench's time stands still unless it is advanced. */
  realTime?: boolean
}

/** How far a broker's time may be from ours. */
const marginMs = 400

/** Drives a mailbox and the model of one with the same random steps, and holds the one against the other, as far as its powers go. */
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
      // A broker would be asked for long to make a failing run shorter.
      const shrinking = realTime ? { endOnFailure: true } : {}
      await fc.assert(property, { numRuns, ...shrinking, ...(seed === undefined ? {} : { seed }) })
      if (!realTime && numRuns >= 100) {
        const missed = landmarks.filter((landmark) => !reached.has(landmark))
        assert.deepEqual(missed, [], 'the runs met everything worth meeting')
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
