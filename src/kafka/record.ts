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
  headers: readonly (readonly [name: Buffer, value: Buffer])[]
}

/** A record to be sent. Names may come twice, so they are told apart by their buffers. */
export interface Written {
  value: Buffer
  headers: Map<Buffer, Buffer>
  key?: Buffer
}

/** Says that there is nothing under this key any more. A topic that is compacted forgets what it had there. */
export interface Tombstone extends Omit<Written, 'value'> {
  value: null
  key: Buffer
}

/** As the broker measures it, near enough. */
export function sizeOf({ value, headers, key }: Written | Tombstone): number {
  let size = (value?.byteLength ?? 0) + (key?.byteLength ?? 0) + 70
  for (const [name, text] of headers) size += name.byteLength + text.byteLength + 10
  return size
}
