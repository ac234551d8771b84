import type { transferEndpoints } from '../../api/endpoints/transfer.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { states } from '../../letter/letter.ts'
import { boundFilter } from '../bounds.ts'
import { maxBodyBytes } from '../limits.ts'
import type { Handlers } from './handler.ts'

export const transferHandlers: Handlers<keyof typeof transferEndpoints> = {
  async *exportLetters({ after, ...filter }, { dlq, caller, signal }) {
    const bounded = boundFilter({ state: [...states], ...withoutUndefined(filter) }, caller)
    const options = after === undefined ? {} : { after }
    for await (const line of dlq.exportLetters(bounded, options)) {
      if (signal.aborted) return
      yield line
    }
  },

  importLetters: (options, { dlq, body, signal }) =>
    dlq.importLetters(body, {
      ...withoutUndefined(options),
      signal,
      // Base64 makes a line longer than its payload.
      maxLineBytes: 4 * maxBodyBytes,
    }),
}
