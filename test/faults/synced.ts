// Whether what was acknowledged had been synced before, as the trace of a process tells it.
import type { Syscall } from './strace.ts'

export interface Acts {
  /** How many acts were traced, one after the other, each awaited. */
  readonly count: number
  /** The file that makes an act durable. */
  readonly log: RegExp
  /** A text that stands in what act `n` writes to the log. */
  readonly mark: (n: number) => string
  /** A text that passes through the process right after the promise of act `n` has resolved. */
  readonly told: (n: number) => string
  /** Whether the act was asked for over a socket, and is acknowledged by a reply. */
  readonly served: boolean
}

const writes = new Set(['write', 'writev', 'pwrite64', 'pwritev'])
const syncs = new Set(['fsync', 'fdatasync'])
const replies = new Set(['write', 'writev', 'sendto', 'sendmsg'])

/**
 * The acts that were acknowledged although their writes were not synced, each with what is wrong. A server
 * acknowledges by its last reply to the client before the client says that it has heard; a process of our own by
 * telling.
 */
export function unsynced(calls: readonly Syscall[], acts: Acts): string[] {
  return Array.from({ length: acts.count }, (_, n) => problemOf(calls, acts, n)).filter(
    (problem) => problem !== undefined,
  )
}

function problemOf(calls: readonly Syscall[], acts: Acts, n: number): string | undefined {
  const told = calls.find(({ text }) => text.includes(acts.told(n)))
  if (!told) return `act ${n}: it was never acknowledged`
  const ack = acts.served ? replyBefore(calls, told, acts.mark(n)) : told
  if (!ack) return `act ${n}: no reply to it was seen`
  const log = calls.filter(({ name, target }) => writes.has(name) && acts.log.test(target))
  const marked = log.filter(({ text, end }) => end < ack.start && text.includes(acts.mark(n)))
  if (marked.length === 0) return `act ${n}: it was acknowledged before it was written`
  // What follows the mark, such as the end of the transaction, must be synced as well.
  const writers = new Set(marked.map(({ pid }) => pid))
  const last = log.findLast(({ pid, end }) => writers.has(pid) && end < ack.start)!
  const synced = calls.some(
    ({ name, target, ok, start, end }) =>
      syncs.has(name) && ok && target === last.target && start > last.end && end < ack.start,
  )
  return synced ? undefined : `act ${n}: it was acknowledged before it was synced`
}

/**
 * The last thing said to the client that asked for the act, before it told that it had heard. It may hear before the
 * trace has the end of the call that said it.
 */
function replyBefore(calls: readonly Syscall[], told: Syscall, mark: string): Syscall | undefined {
  const asked = calls.find(
    ({ name, target, text, end }) =>
      (name === 'read' || name === 'recvfrom') &&
      target !== told.target &&
      end < told.start &&
      text.includes(mark),
  )
  if (!asked) return undefined
  return calls.findLast(
    ({ name, target, start }) =>
      replies.has(name) && target === asked.target && start > asked.end && start < told.start,
  )
}
