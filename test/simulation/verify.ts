import type { Statistics } from '../../src/admin/statistics.ts'
import { states, type DeadLetter } from '../../src/letter/letter.ts'
import { tallyKeys, type TallyKey } from '../../src/store.ts'
import type { System } from './system.ts'
import { textOf } from './ledger.ts'

/** After the run: the store, its counters and the statistics must match the observed calls. */
export async function verifyRun(system: System): Promise<void> {
  const { scheduler, shared, oracle } = system
  await stopAll(system)
  const { items } = await shared.find({ state: [...states], limit: 1000, payload: true })
  const there = new Map(items.map((letter) => [letter.id, letter]))
  for (const letter of items)
    if (!oracle.ledger.letters.has(letter.id))
      scheduler.violate('GHOST', `${letter.id} is in the store and was never added`)
  for (const [id, known] of oracle.ledger.letters) {
    const letter = there.get(id)
    if (!letter) return scheduler.violate('LOSS', `${known.name} is not in the store`)
    oracle.ledger.expectSameLetter(known, letter)
    const original = await shared.original(id)
    if (!original || textOf(original.bytes) !== textOf(known.bytes))
      scheduler.violate('LOSS', `${known.name} lost the bytes that were captured`)
    if (letter.retries !== known.counted)
      scheduler.violate(
        'COUNT',
        `${known.name} has ${letter.retries} retries, counted ${known.counted}`,
      )
    checkHistory(system, known.name, letter)
  }
  for (const id of oracle.additions.acknowledged)
    if (!there.has(id) && !oracle.ledger.gone.has(id))
      scheduler.violate('LOSS', `${oracle.ledger.nameOf(id)} was acknowledged and is missing`)
  await checkCounts(system, items)
  await checkStatistics(system)
  system.runObserver.finish((who) =>
    system.processes.some(({ name, alive }) => name === who && alive),
  )
}

/** Stops all processes, so that nothing changes during the checks. */
async function stopAll(system: System): Promise<void> {
  const { scheduler, setup } = system
  const stopping = new Set(system.liveProcesses())
  for (const process of stopping)
    void process.dlq!.stop({ drainMs: setup.leaseMs }).then(() => stopping.delete(process))
  await scheduler.advance(5 * setup.leaseMs)
  for (const { name, alive } of stopping)
    if (alive) scheduler.violate('LIVE', `${name} does not finish its stop`)
}

/** Each entry starts in the state of the previous one; a claim from pending has no entry. */
function checkHistory(
  { scheduler }: System,
  name: string,
  { history, historyOmitted }: DeadLetter,
): void {
  for (const [index, entry] of history.entries()) {
    const before = history[index - 1]
    if (!before || (index === 1 && historyOmitted > 0)) continue
    if (entry.from !== before.to && !(before.to === 'pending' && entry.from === 'retrying'))
      scheduler.violate('TERM', `the history of ${name} goes from ${before.to} to ${entry.from}`)
  }
}

async function checkCounts(system: System, letters: DeadLetter[]): Promise<void> {
  const { scheduler, shared, oracle } = system
  for (const key of tallyKeys) {
    const tally = await shared.tally(key, { state: [...states] })
    const counted = new Map<string, number>()
    for (const value of letters.flatMap((letter) => valuesOf(letter, key)))
      counted.set(value, (counted.get(value) ?? 0) + 1)
    for (const value of new Set([...tally.keys(), ...counted.keys()]))
      if (tally.get(value) !== counted.get(value))
        scheduler.violate(
          'CONS',
          `${key} ${value}: ${tally.get(value)} by the tally, ${counted.get(value)} letters`,
        )
  }
  const totals = await shared.totals()
  if (totals.length !== oracle.ledger.totals.size)
    scheduler.violate('CONS', `${totals.length} totals of ${oracle.ledger.totals.size}`)
  for (const total of totals) {
    const expected = oracle.ledger.totals.get(`${total.action} ${total.queue} ${total.priority}`)
    for (const key of ['count', 'retries', 'maxRetries'] as const)
      if (total[key] !== expected?.[key])
        scheduler.violate(
          'CONS',
          `${key} of ${total.action} in ${total.queue}: ${total[key]} instead of ${expected?.[key]}`,
        )
    if (Math.abs(total.backoffMs - (expected?.backoffMs ?? 0)) > 1e-3)
      scheduler.violate('CONS', `backoffMs of ${total.action} in ${total.queue} is off`)
  }
}

/** Compares the statistics of the queue, current and lifetime, with the expected letters. */
async function checkStatistics(system: System): Promise<void> {
  const { scheduler, setup, oracle } = system
  let statistics: Statistics | undefined
  void system
    .liveProcesses()[0]
    ?.dlq?.stats()
    .then((result) => (statistics = result))
  await scheduler.advance(setup.leaseMs)
  const { letters } = oracle.ledger
  if (!statistics) return scheduler.violate('LIVE', 'the statistics never arrived')
  const { size, states: stateCounts, lifetime } = statistics
  if (size !== letters.countOccupied() || size + stateCounts.archived !== letters.size)
    scheduler.violate(
      'CONS',
      `the statistics say ${size} and ${stateCounts.archived} archived of ${letters.size}`,
    )
  if (lifetime.captured - lifetime.removed - lifetime.evicted !== letters.size)
    scheduler.violate('CONS', `the lifetime counts leave other than ${letters.size} letters`)
}

function valuesOf(letter: DeadLetter, key: TallyKey): string[] {
  if (key === 'tag') return [...new Set(letter.tags)]
  if (key === 'group') return [letter.fingerprint]
  if (key === 'groupState') return [`${letter.state} ${letter.fingerprint}`]
  if (key === 'policy' || key === 'source') return [letter[key].kind]
  return [letter[key]]
}
