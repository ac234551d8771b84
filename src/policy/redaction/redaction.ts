import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { DeadLetter, Failure, HistoryEntry, Json, Payload } from '../../letter/letter.ts'
import type { EditPreview } from '../../letter/bulk-action.ts'
import type { JsonPatch } from '../../letter/json-patch.ts'
import { tokensOf } from '../../letter/json-pointer.ts'
import type { PayloadDiff } from '../../letter/payload-diff.ts'
import { kindOf } from '../../letter/payload.ts'
import { detect, detectors as allDetectors, isSecretName, type Detector } from './detectors.ts'
import { descend, readPath, type RedactedRoot, type Segments } from './paths.ts'
import { compilePattern, type Pattern } from './pattern.ts'
import { mergeSpans, replaceSpans, type Span } from './spans.ts'

/** What is hidden of the letters of a queue, and from when on. */
export interface RedactOptions {
  /**
   * Values that are hidden completely, such as `payload.card.number`, `headers.authorization` or
   * `metadata.users.*.name`. `*` is any key or index, `**` any number of them.
   */
  paths?: readonly string[]
  /** Regular expressions whose matches are hidden in every text, without lookaround and \1. */
  patterns?: readonly (string | RegExp)[]
  /** Kinds of secrets that are found by their form. Default: all of them. */
  detectors?: readonly Detector[]
  /**
   * True: error messages, metadata and other plain parts are redacted before they are stored.
   * Payloads and headers stay complete, so that letters can run. Default: false, only what the
   * server shows is redacted.
   */
  atCapture?: boolean
  /**
   * True: payloads and headers are redacted before they are stored, for good. A letter whose
   * payload was changed cannot run. It includes `atCapture`. Default: false.
   */
  redactStored?: boolean
}

/** What is shown in place of a hidden value. */
export const redactedMark = '[redacted]'

/** Longer strings and larger payloads are hidden completely: checking them would take too long. */
const maxText = 1024 ** 2
const maxPayload = 4 * 1024 ** 2

/** Digits that JavaScript may not represent exactly. */
const longNumber = /\d{16}/

/** The fields of a letter that are in summaries as well. */
type Described = Omit<DeadLetter, 'payload' | 'history'>

/** Hides secrets and personal data in letters. Pure: it never changes its arguments. */
export class Redaction {
  readonly atCapture: boolean
  readonly redactStored: boolean
  readonly #detectors: ReadonlySet<Detector>
  readonly #patterns: readonly Pattern[]
  readonly #paths: Record<RedactedRoot, Segments[]>

  /** Throws a TypeError if a path or a pattern is not valid. */
  constructor({ paths = [], patterns = [], ...options }: RedactOptions) {
    const { detectors = allDetectors, atCapture = false, redactStored = false } = options
    this.redactStored = redactStored
    this.atCapture = atCapture || redactStored
    this.#detectors = new Set(detectors)
    this.#patterns = patterns.map(compilePattern)
    this.#paths = { payload: [], headers: [], metadata: [], context: [] }
    for (const { root, segments } of paths.map(readPath)) this.#paths[root].push(segments)
  }

  /** The text without the parts that a detector or a pattern finds. */
  text(text: string): string {
    return this.#replace(text, () => redactedMark)
  }

  /** Like `text`, but different secrets stay different: for keys that are compared. */
  key(text: string): string {
    return this.#replace(text, (secret) => `[redacted ${hashOf(secret)}]`)
  }

  #replace(text: string, replace: (secret: string) => string): string {
    if (text.length > maxText) return replace(text)
    const spans: Span[] = detect(text, this.#detectors)
    for (const pattern of this.#patterns) spans.push(...pattern.find(text))
    return spans.length === 0 ? text : replaceSpans(text, mergeSpans(spans), replace)
  }

  /** JSON that belongs to no part of a letter: all its strings. */
  strings<T>(value: T): T {
    return this.#json(value as Json, []) as T
  }

  /** The JSON of a part of a letter. */
  json(value: Json, root: RedactedRoot): Json {
    return this.#json(value, this.#paths[root])
  }

  headers(headers: Readonly<Record<string, string>>): Record<string, string> {
    const isSame = (segment: string, name: string): boolean =>
      segment.toLowerCase() === name.toLowerCase()
    return this.#fields(headers, this.#paths.headers, isSame) as Record<string, string>
  }

  #json(value: Json, paths: readonly Segments[]): Json {
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number') return this.#hidesNumber(value) ? redactedMark : value
    if (typeof value !== 'object' || value === null) return value
    if (rawJson.isRawJSON(value))
      return this.text(value.rawJSON) === value.rawJSON ? value : redactedMark
    if (!Array.isArray(value)) return this.#fields(value, paths)
    return value.map((item, index) => {
      const { isMatch, below } = descend(paths, String(index))
      return isMatch ? redactedMark : this.#json(item, below)
    })
  }

  /** A number that has lost digits cannot be checked: it is hidden if it may be a card number. */
  #hidesNumber(value: number): boolean {
    const text = String(value)
    if (this.text(text) !== text) return true
    const isExact = !Number.isInteger(value) || Number.isSafeInteger(value)
    return !isExact && this.#detectors.has('card-number') && /^-?[2-6]\d{16,18}$/.test(text)
  }

  #fields(
    fields: Readonly<Record<string, Json>>,
    paths: readonly Segments[],
    isSame?: (segment: string, key: string) => boolean,
  ): { [key: string]: Json } {
    const entries = Object.entries(fields).map(([key, value]): [string, Json] => {
      const { isMatch, below } = descend(paths, key, isSame)
      const isSecret = this.#detectors.has('secret-field') && isSecretName(key)
      const isHidden = isMatch || (isSecret && value !== null && typeof value !== 'boolean')
      return [this.text(key), isHidden ? redactedMark : this.#json(value, below)]
    })
    return Object.fromEntries(distinct(entries))
  }

  /**
   * The payload with the same content type. `redacted` says that something is missing. Bytes that
   * are no text are hidden.
   */
  payload(payload: Payload): Payload {
    const { bytes, contentType, keyId } = payload
    // The caller has encrypted it: nobody can read it here.
    if (keyId !== undefined || bytes.byteLength === 0) return payload
    if (!isUtf8(bytes)) return withBytes(payload, new Uint8Array())
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
    const redacted = this.#payloadText(text, kindOf(contentType) === 'text')
    return redacted === text ? payload : withBytes(payload, new TextEncoder().encode(redacted))
  }

  /** The payload as it is stored. Bytes that are no text are stored as they are. */
  storedPayload(payload: Payload): Payload {
    return this.redactStored && isUtf8(payload.bytes) ? this.payload(payload) : payload
  }

  #payloadText(text: string, isText: boolean): string {
    if (text.length > maxPayload) return isText ? redactedMark : JSON.stringify(redactedMark)
    const json = parseJson(text)
    if (json === undefined) return this.text(text)
    const redacted = this.json(json, 'payload')
    const written = JSON.stringify(redacted)
    // Spaces and the digits of numbers stay as they are in a payload without secrets.
    return written === JSON.stringify(json) ? text : written
  }

  /** A value of a payload at a pointer, and the pointer. */
  #at<T extends { path: string }>(change: T, keys: readonly (keyof T)[]): T {
    const tokens = tokensOf(change.path) ?? []
    let paths: readonly Segments[] = this.#paths.payload
    let isHidden = false
    for (const token of tokens) {
      const { isMatch, below } = descend(paths, token)
      isHidden ||= isMatch || (this.#detectors.has('secret-field') && isSecretName(token))
      paths = below
    }
    const shown = { ...change, path: this.text(change.path) }
    for (const key of keys)
      if (change[key] !== undefined)
        shown[key] = (
          isHidden ? redactedMark : this.#json(change[key] as Json, paths)
        ) as T[keyof T]
    return shown
  }

  /** The values of a JSON Patch of a payload. */
  patch(patch: JsonPatch): JsonPatch {
    return patch.map((operation) => this.#at(operation, ['value' as keyof typeof operation]))
  }

  /** The difference between two payloads. */
  diff(diff: PayloadDiff): PayloadDiff {
    if (diff.kind === 'json')
      return { ...diff, changes: diff.changes.map((one) => this.#at(one, ['before', 'after'])) }
    if (diff.kind !== 'text') return diff
    return {
      ...diff,
      changes: diff.changes.map(({ line, before, after }) => ({
        line,
        before: this.#lines(before),
        after: this.#lines(after),
      })),
    }
  }

  /** What an edit would change in a letter. */
  preview({ id, diff, error }: EditPreview): EditPreview {
    return {
      id,
      ...(diff ? { diff: this.diff(diff) } : {}),
      ...(error === undefined ? {} : { error: this.text(error) }),
    }
  }

  /** Lines of a payload. Some may be part of JSON whose paths are not known here. */
  #lines(lines: readonly string[]): string[] {
    if (lines.length === 0) return []
    return this.#paths.payload.length > 0 ? [redactedMark] : this.text(lines.join('\n')).split('\n')
  }

  failure(failure: Failure): Failure {
    const { message, stack, hint, code, causes } = failure
    return {
      ...failure,
      name: this.text(failure.name),
      message: this.text(message),
      ...(stack === undefined ? {} : { stack: this.text(stack) }),
      ...(hint === undefined ? {} : { hint: this.text(hint) }),
      ...(code === undefined ? {} : { code: this.text(code) }),
      causes: causes.map((cause) => this.failure(cause)),
    }
  }

  entry(entry: HistoryEntry): HistoryEntry {
    const { note, failure } = entry
    if (note === undefined && !failure) return entry
    return {
      ...entry,
      ...(note === undefined ? {} : { note: this.text(note) }),
      ...(failure ? { failure: { ...failure, message: this.text(failure.message) } } : {}),
    }
  }

  /** What a list shows of a letter. */
  summary<L extends Described>(letter: L): L {
    const { dedupeKey, lane, headers, task, review, corrupt } = letter
    return {
      ...letter,
      source: this.#source(letter.source),
      ...(dedupeKey === undefined ? {} : { dedupeKey: this.text(dedupeKey) }),
      ...(lane === undefined ? {} : { lane: this.text(lane) }),
      ...(headers ? { headers: this.headers(headers) } : {}),
      ...(task ? { task: this.strings(task) } : {}),
      metadata: this.json(letter.metadata, 'metadata') as DeadLetter['metadata'],
      tags: letter.tags.map((tag) => this.text(tag)),
      failure: this.failure(letter.failure),
      firstFailure: this.failure(letter.firstFailure),
      ...(review?.note === undefined
        ? {}
        : { review: { ...review, note: this.text(review.note) } }),
      ...(corrupt === undefined ? {} : { corrupt: this.text(corrupt) }),
    }
  }

  letter(letter: DeadLetter): DeadLetter {
    return {
      ...this.summary(letter),
      payload: this.payload(letter.payload),
      history: letter.history.map((entry) => this.entry(entry)),
    }
  }

  #source(source: DeadLetter['source']): DeadLetter['source'] {
    if (source.kind === 'pipeline') return source
    const { kind, ...rest } = source
    const { context, ...names } = rest as { context?: Json }
    return {
      kind,
      ...this.strings(names),
      ...(context === undefined ? {} : { context: this.json(context, 'context') }),
    } as DeadLetter['source']
  }

  /**
   * The letter as it is stored, if the queue asks for that. Its failure is redacted already. Names
   * that a replay needs stay: the mailbox, the id of the message, the id of the task.
   */
  captured(letter: DeadLetter): DeadLetter {
    if (!this.atCapture) return letter
    const { source, dedupeKey, lane, task, headers, payload } = letter
    const { context } = source as { context?: Json }
    const stored: DeadLetter = {
      ...letter,
      ...(context === undefined
        ? {}
        : { source: { ...source, context: this.json(context, 'context') } as typeof source }),
      ...(dedupeKey === undefined ? {} : { dedupeKey: this.key(dedupeKey) }),
      ...(lane === undefined ? {} : { lane: this.key(lane) }),
      ...(task ? { task: { ...task, description: this.text(task.description) } } : {}),
      metadata: this.json(letter.metadata, 'metadata') as DeadLetter['metadata'],
      tags: letter.tags.map((tag) => this.key(tag)),
    }
    if (!this.redactStored) return stored
    const changed = this.storedPayload(payload)
    const visible = headers && this.headers(headers)
    const isChanged = JSON.stringify(visible) !== JSON.stringify(headers)
    return {
      ...stored,
      payload: isChanged ? { ...changed, redacted: true } : changed,
      ...(visible ? { headers: visible } : {}),
    }
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 16)
}

function withBytes(payload: Payload, bytes: Uint8Array): Payload {
  return { ...payload, bytes, size: bytes.byteLength, redacted: true }
}

/** A JSON number with all its digits, which `JSON.stringify` writes as they are. */
interface RawNumber {
  readonly rawJSON: string
}

/** Functions of V8 that the library types do not have yet. */
const rawJson = JSON as unknown as {
  rawJSON(text: string): Json
  isRawJSON(value: unknown): value is RawNumber & Json
}

/**
 * The JSON of a string. Undefined: it is not JSON. Long numbers stay as raw JSON: JavaScript would
 * round them, and a rounded card number is not recognised.
 */
function parseJson(text: string): Json | undefined {
  const keepDigits = (_: string, value: Json, context?: { source?: string }): Json =>
    typeof value === 'number' && context?.source !== undefined && longNumber.test(context.source)
      ? rawJson.rawJSON(context.source)
      : value
  try {
    const json = text.replace(/^\ufeff/, '')
    return (longNumber.test(json) ? JSON.parse(json, keepDigits) : JSON.parse(json)) as Json
  } catch {
    return undefined
  }
}

/** Two keys that look alike once they are redacted stay two keys. */
function distinct(entries: [string, Json][]): [string, Json][] {
  const used = new Set<string>()
  return entries.map(([key, value]) => {
    let name = key
    for (let number = 2; used.has(name); number++) name = `${key} ${number}`
    used.add(name)
    return [name, value]
  })
}
