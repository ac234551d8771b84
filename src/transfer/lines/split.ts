/** Text or bytes in pieces of any size: a file, standard input, or the lines of an export. */
export type Chunks = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>

export interface RawLine {
  /** Counted from 1. */
  number: number
  /** With the line break. Undefined: the line has more than `maxBytes`, and was not kept. */
  bytes: Buffer | undefined
  size: number
  /** False: the input ends without a line break. */
  complete: boolean
}

const newline = 0x0a

/** Splits chunks into lines. It holds one chunk and one line of at most `maxBytes`. */
export async function* splitLines(chunks: Chunks, maxBytes: number): AsyncGenerator<RawLine> {
  let number = 1
  let parts: Buffer[] = []
  let size = 0
  const add = (part: Buffer): void => {
    size += part.byteLength
    if (size > maxBytes) parts = []
    else if (part.byteLength > 0) parts.push(part)
  }
  const take = (complete: boolean): RawLine => {
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    const line = { number, bytes: size > maxBytes ? undefined : bytes, size, complete }
    number += 1
    parts = []
    size = 0
    return line
  }
  for await (const chunk of chunks) {
    let rest = toBuffer(chunk)
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
      add(rest.subarray(0, end + 1))
      yield take(true)
      rest = rest.subarray(end + 1)
    }
    add(rest)
  }
  if (size > 0) yield take(false)
}

function toBuffer(chunk: string | Uint8Array): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk)
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
