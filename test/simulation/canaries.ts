import type { Clients } from './captures.ts'
import type { System } from './system.ts'
import type { SimProcess } from './sim-process.ts'

/** Maximum number of leases: enough for an open breaker, a backoff and a poll. */
const maxLeases = 40

/**
 * After the run each process must still work: alone, it settles a new letter of every queue that it
 * handles. A lost slot, breaker or timer shows here, where no other process can hide it.
 */
export async function checkEach(system: System, clients: Clients): Promise<void> {
  const { scheduler, setup } = system
  for (const process of system.liveProcesses()) void process.dlq!.stop({ drainMs: 0 })
  await scheduler.advance(2 * setup.leaseMs + setup.graceMs)
  for (const process of system.liveProcesses()) await checkOne(system, clients, process)
}

async function checkOne(system: System, clients: Clients, process: SimProcess): Promise<void> {
  const { scheduler, setup, oracle } = system
  scheduler.log(`${process.name} runs alone with new letters`)
  // Captured by another process, if there is one, so that only its own timers find the letters.
  const other = system.liveProcesses().find((one) => one !== process) ?? process
  const ids: string[] = []
  for (const queue of process.handles)
    void clients.canary(other, queue).then((id) => id !== undefined && ids.push(id))
  process.dlq!.start()
  const isDone = (id: string): boolean => oracle.ledger.of(id)?.letter.settledAt !== undefined
  for (let lease = 0; lease < maxLeases; lease++) {
    if (!(await scheduler.advance(setup.leaseMs)) || ids.every(isDone)) break
  }
  const left = ids.filter((id) => !isDone(id)).map((id) => oracle.ledger.nameOf(id))
  if (left.length > 0)
    scheduler.violate('LIVE', `${process.name}, running alone, does not settle ${left.join(', ')}`)
  void process.dlq!.stop({ drainMs: 0 })
  await scheduler.advance(2 * setup.leaseMs + setup.graceMs)
}
