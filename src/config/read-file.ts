import { closeSync, openSync, readSync } from 'node:fs'

/** More than any configuration or secret needs. */
const maxBytes = 1024 ** 2

/**
 * Reads a small UTF-8 file. Throws if it is missing, unreadable, not UTF-8 or larger than 1 MiB.
 */
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
