import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { median, result, type Result, type Sizes } from '../harness.ts'

async function fillMailbox(messages: number): Promise<Mailbox> {
  const requests = memoryMailbox({ name: 'requests' })
  for (let n = 0; n < messages; n++) await requests.send({ n })
  return requests
}

/** Microseconds per message without a loop: receive, decode, acknowledge. */
async function measureByHand(messages: number): Promise<number> {
  const requests = await fillMailbox(messages)
  const { signal } = new AbortController()
  const startMs = performance.now()
  for (let n = 0; n < messages; n++) {
    const [message] = await requests.receive({ waitSeconds: 20, visibilitySeconds: 300, signal })
    message!.value()
    await message!.acknowledge()
  }
  return ((performance.now() - startMs) / messages) * 1000
}

/** Microseconds per message with a loop. */
async function measureLoop(messages: number): Promise<number> {
  const requests = await fillMailbox(messages)
  const loop = new MainLoop({ requests, process: () => undefined })
  const startMs = performance.now()
  await loop.run({ maxIterations: messages })
  return ((performance.now() - startMs) / messages) * 1000
}

/** Overhead of a loop per message, on a mailbox in memory. */
export async function loops({ rounds, concurrent, warmUp }: Sizes): Promise<Result[]> {
  await measureByHand(warmUp)
  await measureLoop(warmUp)
  const took: { hand: number; loop: number }[] = []
  for (let round = 0; round < rounds * roundsFactor; round++)
    took.push({ hand: await measureByHand(concurrent), loop: await measureLoop(concurrent) })
  const over = median(took.map(({ hand, loop }) => loop - hand))
  return [
    result('none', 'mailbox by hand, one message', median(took.map(({ hand }) => hand)), 'µs'),
    result('none', 'loop, one message', median(took.map(({ loop }) => loop)), 'µs'),
    result('none', 'loop over a mailbox by hand', over, 'µs', { atMost: 50 }),
  ]
}

/** Rounds are short, so there are more of them than in the store workloads. */
const roundsFactor = 3
