import type { Batch, Call, Kept, Report, Taken } from './protocol.ts'

/**
 * A batch or a report on its way to the other thread: text, and the bytes of all bodies behind one another, which change hands. To clone many
 * small objects, each with an array of its own, takes several times as long.
 */
export interface Crossing {
  text: string
  bytes: Uint8Array<ArrayBuffer>
}

/** What has bytes, and in the text of a crossing how many. */
type Bodied = { bytes: Uint8Array | number }

export function packBatch({ nowMs, calls }: Batch): Crossing {
  return pack({ nowMs, calls }, calls.flatMap(sent))
}

/** The bytes of all calls share one buffer. */
export function unpackBatch({ text, bytes }: Crossing): Batch {
  const batch = JSON.parse(text) as Batch
  let at = 0
  fill(batch.calls.flatMap(sent), (count) => bytes.subarray(at, (at += count)))
  return batch
}

/** Of these calls. */
export function packReport(report: Report, calls: readonly Call[]): Crossing {
  return pack(report, keptIn(report, calls))
}

/** Each message has a buffer of its own: whoever keeps one must not keep all. */
export function unpackReport({ text, bytes }: Crossing, calls: readonly Call[]): Report {
  const report = JSON.parse(text) as Report
  let at = 0
  fill(keptIn(report, calls), (count) => bytes.slice(at, (at += count)))
  return report
}

function sent({ verb, ask }: Call): Bodied[] {
  return verb === 'send' ? [ask] : []
}

function keptIn({ answers }: Report, calls: readonly Call[]): Bodied[] {
  if (!Array.isArray(answers)) return []
  return calls.flatMap(({ verb }, at): Bodied[] => {
    if (verb === 'take') return (answers[at] as Taken).found
    return verb === 'browse' ? (answers[at] as Kept[]) : []
  })
}

/** Takes the bytes out of what is packed, which nobody else has in hand any more. */
function pack(whole: unknown, bodied: Bodied[]): Crossing {
  const parts = bodied.map(({ bytes }) => bytes as Uint8Array)
  for (const one of bodied) one.bytes = (one.bytes as Uint8Array).byteLength
  const bytes = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.byteLength
  }
  return { text: JSON.stringify(whole), bytes }
}

function fill(bodied: Bodied[], next: (count: number) => Uint8Array): void {
  for (const one of bodied) one.bytes = next(one.bytes as number)
}
