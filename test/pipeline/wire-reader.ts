/** One encoded field: its number, its wire type, and a number or the bytes. */
export type Field = [number: number, type: number, value: bigint | string]

/**
 * Reads the wire format of protobuf by its specification alone, as a second opinion. Bytes are in
 * hex.
 */
export function wireFields(bytes: Uint8Array): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error('it ends within a number')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number): string => {
    if (at + length > bytes.length) throw new Error('it ends within a field')
    at += length
    return Buffer.from(bytes.subarray(at - length, at)).toString('hex')
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const type = tag & 7
    if (type === 0) fields.push([tag >> 3, type, varint()])
    else if (type === 1) fields.push([tag >> 3, type, take(8)])
    else if (type === 2) fields.push([tag >> 3, type, take(Number(varint()))])
    else if (type === 5) fields.push([tag >> 3, type, take(4)])
    else throw new Error(`wire type ${type}`)
  }
  return fields
}
