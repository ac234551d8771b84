// Checks in the trace of a process that every acknowledged write was synced before.
import type { Syscall } from './strace.ts'

export interface TracedActions {
  /** The number of traced actions, run one after the other. */
  readonly count: number
  /** The file that makes an action durable. */
  readonly log: RegExp
  /** A string in what action `n` writes to the log. */
  readonly marker: (n: number) => string
  /** A string that the process reads or writes right after the promise of action `n` resolved. */
  readonly acknowledged: (n: number) => string
  /** Whether the request came over a socket and is acknowledged by a reply. */
  readonly viaSocket: boolean
}

const writes = new Set(['write', 'writev', 'pwrite64', 'pwritev'])
const syncs = new Set(['fsync', 'fdatasync'])
const replies = new Set(['write', 'writev', 'sendto', 'sendmsg'])

/**
 * The problems of the actions that were acknowledged before their writes were synced. A server
 * acknowledges by its last reply before the client sends the `acknowledged` string; a process with
 * a local file by printing that string.
 */
export function findUnsynced(calls: readonly Syscall[], actions: TracedActions): string[] {
  return Array.from({ length: actions.count }, (_, n) => problemOf(calls, actions, n)).filter(
    (problem) => problem !== undefined,
  )
}

function problemOf(
  calls: readonly Syscall[],
  actions: TracedActions,
  n: number,
): string | undefined {
  const acknowledged = calls.find(({ text }) => text.includes(actions.acknowledged(n)))
  if (!acknowledged) return `action ${n}: never acknowledged`
  const ack = actions.viaSocket ? replyBefore(calls, acknowledged, actions.marker(n)) : acknowledged
  if (!ack) return `action ${n}: no reply was seen`
  const log = calls.filter(({ name, target }) => writes.has(name) && actions.log.test(target))
  const marked = log.filter(({ text, end }) => end < ack.start && text.includes(actions.marker(n)))
  if (marked.length === 0) return `action ${n}: acknowledged before it was written`
  // The writes after the marker, such as the end of the transaction, must be synced as well.
  const writers = new Set(marked.map(({ pid }) => pid))
  const last = log.findLast(({ pid, end }) => writers.has(pid) && end < ack.start)!
  const synced = calls.some(
    ({ name, target, ok, start, end }) =>
      syncs.has(name) && ok && target === last.target && start > last.end && end < ack.start,
  )
  return synced ? undefined : `action ${n}: acknowledged before it was synced`
}

/**
 * The last reply to the requesting client before it sent the `acknowledged` string. The client may
 * receive the reply before the trace has the end of the sending call.
 */
function replyBefore(
  calls: readonly Syscall[],
  acknowledged: Syscall,
  marker: string,
): Syscall | undefined {
  const request = calls.find(
    ({ name, target, text, end }) =>
      (name === 'read' || name === 'recvfrom') &&
      target !== acknowledged.target &&
      end < acknowledged.start &&
      text.includes(marker),
  )
  if (!request) return undefined
  return calls.findLast(
    ({ name, target, start }) =>
      replies.has(name) &&
      target === request.target &&
      start > request.end &&
      start < acknowledged.start,
  )
}
