import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../../src/mailbox.ts'
import { sqliteMailbox } from '../../../src/mailboxes/sqlite/sqlite.ts'
import { run as runProgram, spawn } from '../../processes.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

const script = join(import.meta.dirname, 'child.ts')

describe('sqliteMailbox shared by processes', { timeout: 60_000 }, () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  let mailbox: Mailbox
  const names = ['a', 'b', 'c', 'd']

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'mail.db')
    mailbox = sqliteMailbox({ path, name: 'shared' })
  })
  afterEach(async () => {
    await mailbox.close()
    await directory.clear()
  })

  const run = async (task: string, name?: string): Promise<string[]> => {
    const args = [script, task, path, ...(name ? [name] : [])]
    const { stdout } = await runProgram(process.execPath, args, { timeout: 50_000 })
    return stdout.split('\n').filter(Boolean)
  }

  /** A process that is not awaited, and its lines. */
  const start = (task: string) => {
    const child = spawn(process.execPath, [script, task, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() }
  }

  it('is created by four processes at once, stores what they send, and gives each message to one of four', async () => {
    const sent = (await Promise.all(names.map((name) => run('send', name)))).flat()
    expect(new Set(sent).size).toBe(800)
    await mailbox.open()
    expect((await mailbox.health()).problems).toEqual([])
    expect(await mailbox.approximateCount()).toBe(800)
    const taken = (await Promise.all(names.map(() => run('drain')))).flat()
    expect(taken.toSorted()).toEqual(sent.toSorted())
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('wakes a waiting receiver of another process', async () => {
    await mailbox.open()
    const { child, lines } = start('wait')
    expect((await lines.next()).value).toBe('waiting')
    const id = await mailbox.send('over there')
    expect((await lines.next()).value).toBe(id)
    await once(child, 'exit')
    expect(await mailbox.approximateCount()).toBe(0)
  })

  it('delivers a message again when its receiver was killed', async () => {
    await mailbox.open()
    const id = await mailbox.send('survives')
    const { child, lines } = start('hold')
    expect((await lines.next()).value).toBe(id)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await mailbox.approximateCount()).toBe(1)
    const [again] = await mailbox.receive({ waitSeconds: 30 })
    expect(again).toMatchObject({ id, deliveries: 2, failures: 0 })
    await again!.acknowledge()
  })

  it('does not keep the process alive, closed or not', async () => {
    // The senders above close their mailbox; this process does not.
    await run('leave')
    await mailbox.open()
    expect(await mailbox.approximateCount()).toBe(1)
  })
})
