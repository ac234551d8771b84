/** A record as it lies in a topic. */
export interface Stored {
  topic: string
  partition: number
  offset: number
  timestampMs: number
  key: Buffer | undefined
  value: Buffer
  /** It has no value at all. Sent on, it is a tombstone, and not an empty value. */
  isNull?: true
  headers: Headers
  /** The timestamp is when the broker wrote the record (LogAppendTime), not when its producer created it. */
  isAppendTime?: true
}

/** In order. A name may come several times, and a value may be null, which is not the same as empty. */
export type Headers = readonly (readonly [name: Buffer, value: Buffer | null])[]

/** A record to be sent. A name may come several times: the map compares names by identity, so each has a buffer of its own. */
export interface Written {
  /** Null: a tombstone, by which a compacted topic removes what it has under this key. */
  value: Buffer | null
  headers: Map<Buffer, Buffer | null>
  key?: Buffer
}

/** As the broker measures it, near enough. */
export function sizeOf({ value, headers, key }: Written): number {
  let size = (value?.byteLength ?? 0) + (key?.byteLength ?? 0) + 70
  for (const [name, text] of headers) size += name.byteLength + (text?.byteLength ?? 0) + 10
  return size
}
