import type { Headers } from '../dead/lineage.ts'

/** The part of an envelope that a replay needs. */
export interface EnvelopePeek {
  errorType: string
  errorMessage: string
  /** 0 if unknown. */
  failedMs: number
  firstFailedMs: number
  node: string
  graph: string
  topic: string
  partition: number
  reprocessed: number
  key: Buffer | undefined
  headers: Headers
  replayable: boolean
  /** The dead record, byte for byte. */
  value: Buffer
  isStream: boolean
}

const nothing = Buffer.alloc(0)
/** By field number. */
const lastTexts: string[] = []

/**
 * Decodes an envelope by hand: replays read a great many, and the general decoder, which creates a
 * message of every part, takes longer than sending them. Nothing is copied. Undefined if the bytes
 * are not an envelope, or truncated.
 */
export function peekEnvelope(bytes: Buffer): EnvelopePeek | undefined {
  try {
    const seen = new Seen(bytes)
    return seen.hasValue && (seen.errorType !== '' || seen.node !== '') ? seen : undefined
  } catch {
    return undefined
  }
}

class Seen implements EnvelopePeek {
  errorType = ''
  failedMs = 0
  firstFailedMs = 0
  node = ''
  graph = ''
  topic = ''
  partition = 0
  reprocessed = 0
  key: Buffer | undefined = undefined
  readonly headers: [Buffer, Buffer | null][] = []
  replayable = true
  value: Buffer = nothing
  isStream = false
  readonly #bytes: Buffer
  #messageFrom = 0
  #messageTo = 0
  #hasRaw = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    const cursor = new Cursor(bytes, 0, bytes.length)
    while (cursor.next())
      if (cursor.type === 2) this.#take(cursor)
      else if (cursor.type === 0) this.#count(cursor)
  }

  get hasValue(): boolean {
    return this.isStream || this.#hasRaw
  }

  /** Long, and seldom needed. */
  get errorMessage(): string {
    return this.#bytes.toString('utf8', this.#messageFrom, this.#messageTo)
  }

  #take(cursor: Cursor): void {
    const { field } = cursor
    if (field === 1) this.#takeStream(cursor.bytes())
    else if (field === 2) this.errorType = cursor.text()
    else if (field === 3) [this.#messageFrom, this.#messageTo] = [cursor.from, cursor.at]
    else if (field === 4) this.failedMs = momentIn(cursor.inner())
    else if (field === 6) this.node = cursor.text()
    else if (field === 7) this.topic = cursor.text()
    else if (field === 13) this.firstFailedMs = momentIn(cursor.inner())
    else if (field === 15) this.graph = cursor.text()
    else if (field === 16) this.key = cursor.bytes()
    else if (field === 17) this.headers.push(headerIn(cursor.inner()))
    else if (field === 19) {
      this.value = cursor.bytes()
      this.#hasRaw = true
      this.isStream = false
    }
  }

  /** A stream that occurs several times is one message in parts. */
  #takeStream(part: Buffer): void {
    if (this.#hasRaw) return
    this.value = this.isStream ? Buffer.concat([this.value, part]) : part
    this.isStream = true
  }

  #count({ field, value }: Cursor): void {
    if (field === 9) this.partition = value
    else if (field === 10) this.reprocessed = value
    else if (field === 22) this.replayable = value !== 0
  }
}

function headerIn(cursor: Cursor): [Buffer, Buffer | null] {
  let name: Buffer = nothing
  let value: Buffer | null = null
  while (cursor.next()) {
    if (cursor.type !== 2) continue
    if (cursor.field === 1) name = cursor.bytes()
    else if (cursor.field === 2) value = cursor.bytes()
  }
  return [name, value]
}

function momentIn(cursor: Cursor): number {
  let ms = 0
  while (cursor.next()) {
    if (cursor.type !== 0) continue
    if (cursor.field === 1) ms += cursor.value * 1000
    else if (cursor.field === 2) ms += Math.floor(cursor.value / 1_000_000)
  }
  return ms
}

/** Reads the fields of a message. Throws if it is truncated or invalid. */
class Cursor {
  at: number
  field = 0
  /** 0: a number. 2: bytes. */
  type = 0
  value = 0
  /** Where the bytes start. They end at the cursor. */
  from = 0
  readonly #bytes: Buffer
  readonly #end: number

  constructor(bytes: Buffer, from: number, end: number) {
    this.#bytes = bytes
    this.at = from
    this.#end = end
  }

  next(): boolean {
    if (this.at === this.#end) return false
    const tag = this.#number()
    this.field = tag >>> 3
    this.type = tag & 7
    if (this.type === 0) this.value = this.#number()
    else if (this.type === 2) {
      const length = this.#number()
      this.from = this.at
      this.at += length
    } else if (this.type === 1) this.at += 8
    else if (this.type === 5) this.at += 4
    else throw broken()
    if (this.field === 0 || this.at < this.from || this.at > this.#end) throw broken()
    return true
  }

  bytes(): Buffer {
    return this.#bytes.subarray(this.from, this.at)
  }

  /** Most dead records of a topic have the same value here, so the last string is cached. */
  text(): string {
    const last = lastTexts[this.field] ?? ''
    if (this.#says(last)) return last
    return (lastTexts[this.field] = this.#bytes.toString('utf8', this.from, this.at))
  }

  inner(): Cursor {
    return new Cursor(this.#bytes, this.from, this.at)
  }

  #says(text: string): boolean {
    if (text.length !== this.at - this.from) return false
    for (let at = 0; at < text.length; at++) {
      const byte = this.#bytes[this.from + at]!
      if (byte > 0x7f || byte !== text.charCodeAt(at)) return false
    }
    return true
  }

  /** Seven bits per byte, the lowest first. */
  #number(): number {
    let byte = this.#byte()
    let value = byte & 0x7f
    for (let scale = 128; byte > 0x7f && scale < 2 ** 63; scale *= 128) {
      byte = this.#byte()
      value += (byte & 0x7f) * scale
    }
    return byte > 0x7f ? this.#negative() : value
  }

  /**
   * Only negative numbers have ten bytes. Too large for addition, they are recognised by their
   * length.
   */
  #negative(): number {
    let lacking = 0
    this.at -= 9
    for (let scale = 1; scale < 2 ** 63; scale *= 128) lacking += (~this.#byte() & 0x7f) * scale
    if (this.#byte() !== 1) throw broken()
    return -1 - lacking
  }

  #byte(): number {
    const byte = this.at < this.#end ? this.#bytes[this.at++] : undefined
    if (byte === undefined) throw broken()
    return byte
  }
}

function broken(): Error {
  return new Error('the bytes are not a message')
}
