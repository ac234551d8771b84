import { isUtf8 } from 'node:buffer'
import type { LetterView, PayloadView, SummaryView } from '../api/schemas/letter.ts'
import type {
  DeadLetter,
  Failure,
  HistoryEntry,
  Json,
  LetterSummary,
  Payload,
} from '../letter/letter.ts'
import { kindOf } from '../letter/payload.ts'
import type { Caller } from './caller.ts'
import type { Viewer } from './viewer.ts'

/** A letter as a caller may see it. */
export function viewLetter(letter: DeadLetter, caller: Viewer): LetterView {
  const shown = caller.redaction(letter.queue)?.letter(letter) ?? letter
  const { payload, history, ...rest } = shown
  if (mayReadContent(caller)) return { ...rest, history, payload: viewPayload(payload) }
  return {
    ...hideContent(rest),
    history: history.map(hideEntry),
    payload: factsOf(payload),
    hidden: true,
  }
}

/** A letter that was shown, without content. */
export function hideLetter({ payload, history, ...rest }: LetterView): LetterView {
  const { json: _, text: __, base64: ___, ...facts } = payload
  return {
    ...hideContent(rest),
    history: history.map((entry) => hideEntry(entry)),
    payload: facts,
    hidden: true,
  }
}

function hideEntry(entry: HistoryEntry): HistoryEntry {
  const { note: _, failure, ...rest } = entry
  return failure ? { ...rest, failure: { ...failure, message: '' } } : rest
}

/** A letter of a list as a caller may see it. Stacks would be most of a page, and are left out. */
export function viewSummary(given: LetterSummary, caller: Viewer): SummaryView {
  const letter = {
    ...given,
    failure: withoutStack(given.failure),
    firstFailure: withoutStack(given.firstFailure),
  }
  const payload = factsOf(letter.payload)
  const shown = caller.redaction(letter.queue)?.summary(letter) ?? letter
  if (mayReadContent(caller)) return { ...shown, payload }
  return { ...hideContent(shown), payload, hidden: true }
}

function withoutStack(failure: Failure): Failure {
  const { stack: _, ...rest } = failure
  return { ...rest, causes: failure.causes.map(withoutStack) }
}

export function mayReadContent({ permissions }: Pick<Caller, 'permissions'>): boolean {
  return permissions.has('payload:read')
}

/** The bytes as JSON, text or base64, whatever people can read best. */
export function viewPayload(payload: Payload): PayloadView {
  const { bytes, contentType } = payload
  const facts = factsOf(payload)
  if (payload.redacted && bytes.byteLength === 0) return facts
  if (payload.keyId !== undefined || !isUtf8(bytes)) return { ...facts, base64: base64Of(bytes) }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const json = kindOf(contentType) === 'json' ? tryParse(text) : undefined
  return json === undefined ? { ...facts, text } : { ...facts, json }
}

function base64Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}

function tryParse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

function factsOf(payload: Omit<Payload, 'bytes'> & { bytes?: Uint8Array }): Omit<Payload, 'bytes'> {
  const { bytes: _, ...facts } = payload
  return facts
}

type Described = Omit<LetterSummary, 'payload'>

/** The letter without anything that comes from its payload, its headers or its error text. */
function hideContent<T extends Described>(letter: T): T {
  const { dedupeKey: _, headers: __, task: ___, github: ____, review, ...rest } = letter
  return {
    ...rest,
    source: hideSource(letter.source),
    metadata: {},
    failure: hideFailure(letter.failure),
    firstFailure: hideFailure(letter.firstFailure),
    ...(review ? { review: { ...review, note: '' } } : {}),
    ...(letter.corrupt === undefined ? {} : { corrupt: 'its row cannot be read' }),
  } as T
}

function hideSource(source: Described['source']): Described['source'] {
  if (source.kind !== 'operation' && source.kind !== 'workflow') return source
  const { context: _, ...rest } = source
  return rest
}

/** The name, the code and the status of an error are chosen by programmers, not by data. */
function hideFailure({ name, code, status, retryAfterMs, causes, at }: Failure): Failure {
  return {
    name,
    message: '',
    ...(code === undefined ? {} : { code }),
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    causes: causes.map(hideFailure),
    at,
  }
}
