import type { AnyCall, Batch, SentCall } from './protocol.ts'

/** Calls as they cross to the thread. */
export function loaded(nowMs: number, calls: readonly AnyCall[]): Batch {
  let size = 0
  for (const [, , , bytes] of calls) size += bytes?.byteLength ?? 0
  const all = size > 0 ? new Uint8Array(size) : undefined
  let end = 0
  const light = calls.map(([number, verb, ask, bytes]): SentCall => {
    if (!bytes) return [number, verb, ask]
    all?.set(bytes, end)
    end += bytes.byteLength
    return [number, verb, ask, bytes.byteLength]
  })
  return all ? [nowMs, light, all] : [nowMs, light]
}

/** Calls as they were before they crossed. */
export function unloaded([, calls, all = none]: Batch): AnyCall[] {
  let end = 0
  return calls.map(([number, verb, ask, size]): AnyCall => {
    if (size === undefined) return [number, verb, ask]
    return [number, verb, ask, all.subarray(end, (end += size))]
  })
}

const none = new Uint8Array()
