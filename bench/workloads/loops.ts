import { MainLoop } from '../../src/loops/main-loop.ts'
import type { Mailbox } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { median, result, type Result, type Sizes } from '../harness.ts'

async function filled(messages: number): Promise<Mailbox> {
  const requests = memoryMailbox({ name: 'requests' })
  for (let n = 0; n < messages; n++) await requests.send({ n })
  return requests
}

/** Microseconds for each message, by hand: receive, decode, acknowledge. */
async function byHand(messages: number): Promise<number> {
  const requests = await filled(messages)
  const { signal } = new AbortController()
  const startMs = performance.now()
  for (let n = 0; n < messages; n++) {
    const [message] = await requests.receive({ waitSeconds: 20, visibilitySeconds: 300, signal })
    message!.value()
    await message!.acknowledge()
  }
  return ((performance.now() - startMs) / messages) * 1000
}

/** The same, through a loop. */
async function throughLoop(messages: number): Promise<number> {
  const requests = await filled(messages)
  const loop = new MainLoop({ requests, process: () => undefined })
  const startMs = performance.now()
  await loop.run({ maxIterations: messages })
  return ((performance.now() - startMs) / messages) * 1000
}

/** What a message costs more through a loop than by hand, on a mailbox in memory. */
export async function loops({ rounds, concurrent, warmUp }: Sizes): Promise<Result[]> {
  await byHand(warmUp)
  await throughLoop(warmUp)
  const took: { hand: number; loop: number }[] = []
  for (let round = 0; round < rounds * roundsMore; round++)
    took.push({ hand: await byHand(concurrent), loop: await throughLoop(concurrent) })
  const over = median(took.map(({ hand, loop }) => loop - hand))
  return [
    result('none', 'mailbox by hand, one message', median(took.map(({ hand }) => hand)), 'µs'),
    result('none', 'loop, one message', median(took.map(({ loop }) => loop)), 'µs'),
    result('none', 'loop over a mailbox by hand', over, 'µs', { atMost: 50 }),
  ]
}

/** A round is short, so that there can be more of them than where stores are measured. */
const roundsMore = 3
