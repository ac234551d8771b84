import { closeSync, openSync, readSync } from 'node:fs'

/** More than any configuration or secret needs. */
const maxBytes = 1024 ** 2

/** The text of a small file. Throws when it is not there, may not be read, is no UTF-8 or is larger than 1 MiB. */
export function readTextFile(path: string): string {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(maxBytes + 1)
    let length = 0
    for (;;) {
      const count = readSync(file, bytes, length, bytes.length - length, null)
      length += count
      if (length > maxBytes) throw new Error(`${path} is larger than ${maxBytes} bytes`)
      if (count === 0) break
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length))
  } finally {
    closeSync(file)
  }
}
