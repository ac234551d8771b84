import type { transferEndpoints } from '../../api/endpoints/transfer.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { toCanonicalJson } from '../../letter/canonical-json.ts'
import { states } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'
import { boundFilter } from '../bounds.ts'
import { maxBodyBytes } from '../limits.ts'
import { revealIf } from '../reveal.ts'
import type { Viewer } from '../viewer.ts'
import type { Handlers } from './handler.ts'

export const transferHandlers: Handlers<keyof typeof transferEndpoints> = {
  async *exportLetters({ after, reveal, ...filter }, context) {
    const { dlq, caller, signal } = context
    const bounded = boundFilter({ state: [...states], ...withoutUndefined(filter) }, caller)
    const what = { kind: 'letters', id: toCanonicalJson(bounded) } as const
    const viewer = await revealIf(reveal, context, what)
    const show = (stored: StoredLetter): StoredLetter => redactStored(stored, viewer)
    const options = { show, ...(after === undefined ? {} : { after }) }
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

/** A redacted payload says so: an import of the line gives a letter that cannot run. */
function redactStored(stored: StoredLetter, viewer: Viewer): StoredLetter {
  const { letter, original } = stored
  const redaction = viewer.redaction(letter.queue)
  if (!redaction) return stored
  return {
    ...stored,
    letter: redaction.letter(letter),
    ...(original ? { original: redaction.payload(original) } : {}),
  }
}
