import type { Clients } from './captures.ts'
import type { House } from './house.ts'
import type { SimProcess } from './sim-process.ts'

/** Leases that a process may take for it: an open breaker, a backoff and a poll are well within. */
const patience = 40

/**
 * After all is done each process must still be fit: left alone, it works off a fresh letter of every queue that it
 * handles. A slot, a breaker or a timer that was lost on the way shows here, where another process would hide it.
 */
export async function checkEach(house: House, clients: Clients): Promise<void> {
  const { world, setup } = house
  for (const process of house.living()) void process.dlq!.stop({ drainMs: 0 })
  await world.pass(2 * setup.leaseMs + setup.graceMs)
  for (const process of house.living()) await checkOne(house, clients, process)
}

async function checkOne(house: House, clients: Clients, process: SimProcess): Promise<void> {
  const { world, setup, oracle } = house
  world.log(`${process.name} is left alone with fresh letters`)
  // Captured by another one, if there is one, so that nothing but its own timers tells it.
  const other = house.living().find((one) => one !== process) ?? process
  const ids: string[] = []
  for (const queue of process.handles)
    void clients.canary(other, queue).then((id) => id !== undefined && ids.push(id))
  process.dlq!.start()
  const isDone = (id: string): boolean => oracle.ledger.of(id)?.letter.settledAt !== undefined
  for (let lease = 0; lease < patience; lease++) {
    if (!(await world.pass(setup.leaseMs)) || ids.every(isDone)) break
  }
  const left = ids.filter((id) => !isDone(id)).map((id) => oracle.ledger.nameOf(id))
  if (left.length > 0)
    world.violate('LIVE', `${process.name}, left alone, does not work off ${left.join(', ')}`)
  void process.dlq!.stop({ drainMs: 0 })
  await world.pass(2 * setup.leaseMs + setup.graceMs)
}
