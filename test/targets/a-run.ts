import { encodePayload } from '../../src/letter/payload.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import type { Run } from '../../src/redelivery/run.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

/** A run of a letter with this payload, and the means to abort it. */
export function aRun(
  value: unknown,
  overrides: Partial<DeadLetter> = {},
): { run: Run; abort: (reason?: unknown) => void } {
  const controller = new AbortController()
  const letter = aLetter({ payload: encodePayload(value), ...overrides })
  const run: Run = {
    letter,
    input: value,
    attempt: 2,
    signal: controller.signal,
    idempotencyKey: `${letter.id}:0`,
    epoch: 7,
  }
  return { run, abort: (reason) => controller.abort(reason) }
}
