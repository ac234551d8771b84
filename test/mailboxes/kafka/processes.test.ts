import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { spawn } from '../../processes.ts'
import { backend } from '../../servers/servers.ts'
import { kafkaBench, mailboxName, type KafkaBench } from './kafka-bench.ts'

const { url, missing } = backend('kafka')
const script = join(import.meta.dirname, 'child.ts')

describe.skipIf(missing)('kafkaMailbox in processes that are killed', { timeout: 60_000 }, () => {
  let bench: KafkaBench
  beforeEach(() => {
    bench = kafkaBench(url)
  })
  afterEach(() => bench.close())

  const start = (task: string) => {
    const child = spawn(process.execPath, [script, task, url, bench.prefix, mailboxName], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() }
  }

  it('loses no message when a process is killed at work', async () => {
    const mailbox = await bench.open({ partitions: 2 })
    const sent = await Promise.all(Array.from({ length: 2000 }, (_, n) => mailbox.send(n)))
    const { child, lines } = start('work')
    const done = new Set<string>()
    while (done.size < 300) done.add((await lines.next()).value as string)
    child.kill('SIGKILL')
    for await (const id of lines) done.add(id)
    const byChild = done.size
    expect(byChild).toBeLessThan(sent.length)
    const again = new Set<string>()
    while ((await mailbox.approximateCount()) > 0)
      for (const message of await mailbox.receive({ max: 10, waitSeconds: 20 })) {
        await message.acknowledge()
        again.add(message.id)
      }
    for (const id of again) expect(done.has(id), 'none that was acknowledged').toBe(false)
    // A message can be acknowledged by a process that was killed before it reported it.
    expect(sent.length - byChild - again.size).toBeLessThanOrEqual(30)
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('counts the deliveries of a message that kills its receivers', async () => {
    const mailbox = await bench.open()
    await mailbox.send('before')
    await mailbox.send('poison')
    await mailbox.send('behind')
    for (let death = 1; death <= 3; death++) {
      const [, signal] = (await once(start('die').child, 'exit')) as [unknown, string]
      expect(signal).toBe('SIGKILL')
    }
    const [poison] = await mailbox.receive({ waitSeconds: 20 })
    expect(poison!.value()).toBe('poison')
    expect(poison!.deliveries).toBe(4)
    await poison!.acknowledge()
    const [behind] = await mailbox.receive({ waitSeconds: 20 })
    expect(behind!.value()).toBe('behind')
  })
})
