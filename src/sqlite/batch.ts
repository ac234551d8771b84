import type { AnyCall, Load, SentCall } from './protocol.ts'

/** Calls as they cross to the thread. */
export function loaded(calls: readonly AnyCall[]): Load {
  let size = 0
  for (const [, , , bytes] of calls) size += bytes?.byteLength ?? 0
  const all = new Uint8Array(size)
  let end = 0
  const light = calls.map(([number, verb, ask, bytes]): SentCall => {
    if (!bytes) return [number, verb, ask]
    all.set(bytes, end)
    end += bytes.byteLength
    return [number, verb, ask, bytes.byteLength]
  })
  return { calls: light, bytes: all }
}

/** Calls as they were before they crossed. */
export function unloaded({ calls, bytes }: Load): AnyCall[] {
  let end = 0
  return calls.map(([number, verb, ask, size]): AnyCall => {
    if (size === undefined) return [number, verb, ask]
    return [number, verb, ask, bytes.subarray(end, (end += size))]
  })
}
