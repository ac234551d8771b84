import type { Statistics } from '../../src/admin/statistics.ts'
import { states, type DeadLetter } from '../../src/letter/letter.ts'
import { tallyKeys, type TallyKey } from '../../src/store.ts'
import type { House } from './house.ts'
import { textOf } from './ledger.ts'

/** After the run: the store, its counts and the house's own answers must all tell the story that was seen. */
export async function judge(house: House): Promise<void> {
  const { world, shared, oracle } = house
  await stopAll(house)
  const { items } = await shared.find({ state: [...states], limit: 1000, payload: true })
  const there = new Map(items.map((letter) => [letter.id, letter]))
  for (const letter of items)
    if (!oracle.ledger.letters.has(letter.id))
      world.violate('GHOST', `${letter.id} is in the store and was never added`)
  for (const [id, known] of oracle.ledger.letters) {
    const letter = there.get(id)
    if (!letter) return world.violate('LOSS', `${known.name} is not in the store`)
    oracle.ledger.sameLetter(known, letter)
    const original = await shared.original(id)
    if (!original || textOf(original.bytes) !== textOf(known.bytes))
      world.violate('LOSS', `${known.name} lost the bytes that were captured`)
    if (letter.retries !== known.counted)
      world.violate(
        'COUNT',
        `${known.name} has ${letter.retries} retries, counted ${known.counted}`,
      )
    checkHistory(house, known.name, letter)
  }
  for (const id of oracle.additions.acknowledged)
    if (!there.has(id) && !oracle.ledger.gone.has(id))
      world.violate('LOSS', `${oracle.ledger.nameOf(id)} was acknowledged and is gone`)
  await checkCounts(house, items)
  await checkStatistics(house)
  house.witness.finish((who) => house.processes.some(({ name, alive }) => name === who && alive))
}

/** So that nothing moves while it is counted. */
async function stopAll(house: House): Promise<void> {
  const { world, setup } = house
  const stopping = new Set(house.living())
  for (const process of stopping)
    void process.dlq!.stop({ drainMs: setup.leaseMs }).then(() => stopping.delete(process))
  await world.pass(5 * setup.leaseMs)
  for (const { name, alive } of stopping)
    if (alive) world.violate('LIVE', `${name} never ends to stop`)
}

/** Each entry begins where the one before ended; a claim from pending leaves no entry. */
function checkHistory(
  { world }: House,
  name: string,
  { history, historyOmitted }: DeadLetter,
): void {
  for (const [index, entry] of history.entries()) {
    const before = history[index - 1]
    if (!before || (index === 1 && historyOmitted > 0)) continue
    if (entry.from !== before.to && !(before.to === 'pending' && entry.from === 'retrying'))
      world.violate('TERM', `the history of ${name} goes from ${before.to} to ${entry.from}`)
  }
}

async function checkCounts(house: House, letters: DeadLetter[]): Promise<void> {
  const { world, shared, oracle } = house
  for (const key of tallyKeys) {
    const tally = await shared.tally(key, { state: [...states] })
    const counted = new Map<string, number>()
    for (const value of letters.flatMap((letter) => valuesOf(letter, key)))
      counted.set(value, (counted.get(value) ?? 0) + 1)
    for (const value of new Set([...tally.keys(), ...counted.keys()]))
      if (tally.get(value) !== counted.get(value))
        world.violate(
          'CONS',
          `${key} ${value}: ${tally.get(value)} by the tally, ${counted.get(value)} letters`,
        )
  }
  const totals = await shared.totals()
  if (totals.length !== oracle.ledger.totals.size)
    world.violate('CONS', `${totals.length} totals of ${oracle.ledger.totals.size}`)
  for (const total of totals) {
    const must = oracle.ledger.totals.get(`${total.action} ${total.queue} ${total.priority}`)
    for (const key of ['count', 'retries', 'maxRetries'] as const)
      if (total[key] !== must?.[key])
        world.violate(
          'CONS',
          `${key} of ${total.action} in ${total.queue}: ${total[key]} instead of ${must?.[key]}`,
        )
    if (Math.abs(total.backoffMs - (must?.backoffMs ?? 0)) > 1e-3)
      world.violate('CONS', `backoffMs of ${total.action} in ${total.queue} is off`)
  }
}

/** What the house itself says of its letters, now and over its lifetime. */
async function checkStatistics(house: House): Promise<void> {
  const { world, setup, oracle } = house
  let told: Statistics | undefined
  void house
    .living()[0]
    ?.dlq?.stats()
    .then((statistics) => (told = statistics))
  await world.pass(setup.leaseMs)
  const { letters } = oracle.ledger
  if (!told) return world.violate('LIVE', 'the statistics never came')
  const { size, states: standing, lifetime } = told
  if (size !== letters.occupied() || size + standing.archived !== letters.size)
    world.violate(
      'CONS',
      `the statistics say ${size} and ${standing.archived} archived of ${letters.size}`,
    )
  if (lifetime.captured - lifetime.removed - lifetime.evicted !== letters.size)
    world.violate('CONS', `the lifetime counts leave other than ${letters.size} letters`)
}

function valuesOf(letter: DeadLetter, key: TallyKey): string[] {
  if (key === 'tag') return [...new Set(letter.tags)]
  if (key === 'group') return [letter.fingerprint]
  if (key === 'policy' || key === 'source') return [letter[key].kind]
  return [letter[key]]
}
