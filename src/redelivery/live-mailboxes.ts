import type { LoopStatus } from '../letter/loop-status.ts'
import type { LiveWorker } from './live-workers.ts'

/** A loop on a mailbox, and the process that runs it. */
export interface LiveLoop extends Omit<LoopStatus, 'mailbox' | 'broker'> {
  /** The id of the process. */
  worker: string
  host?: string
}

/** A mailbox that loops of live processes receive from. */
export interface LiveMailbox {
  name: string
  /** The kind of broker: "redis", "rabbitmq". */
  broker: string
  loops: LiveLoop[]
}

/**
 * The mailboxes of the loops that live processes report, by name. Those with the same name on the
 * same kind of broker count as one.
 */
export function mailboxesOf(workers: readonly LiveWorker[]): LiveMailbox[] {
  const mailboxes = new Map<string, LiveMailbox>()
  for (const { id: worker, host, loops = [] } of workers)
    for (const { mailbox: name, broker, ...loop } of loops) {
      const key = JSON.stringify([name, broker])
      const mailbox = mailboxes.get(key) ?? { name, broker, loops: [] }
      mailbox.loops.push({ worker, ...(host === undefined ? {} : { host }), ...loop })
      mailboxes.set(key, mailbox)
    }
  return [...mailboxes].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, one]) => one)
}
