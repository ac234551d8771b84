import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { spawn } from '../../processes.ts'
import { aFolder, aSpool } from './spool-bench.ts'

/**
 * Runs a child on the folder, kills it after `count` acknowledged letters, and returns the lines of
 * all acknowledged letters.
 */
async function runAndKill(count: number, folder: string): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts'), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    if (text.split('\n').length > count) child.kill('SIGKILL')
  })
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  expect(signal).toBe('SIGKILL')
  return text.split('\n').slice(0, -1)
}

it('letters acknowledged before kill -9 are in the store after the drain, in order', async () => {
  await using folder = await aFolder()
  const spool = join(folder.path, 'spool')
  const chance = fakeClock(0, 7)
  const ledger: string[] = []
  for (let round = 0; round < 3; round++) {
    const counts = [0, 1].map(() => 1 + Math.floor(chance.random() * 150))
    ledger.push(...(await Promise.all(counts.map((count) => runAndKill(count, spool)))).flat())
  }
  const inner = sqliteStore({ path: join(folder.path, 'letters.db') })
  await using bench = await aSpool({ path: spool, clock: systemClock }, inner)
  const { count, duplicates } = await bench.until('drained')
  expect(duplicates).toBe(0)
  expect(count).toBeGreaterThanOrEqual(ledger.length)
  const acknowledged = ledger.map((line) => line.split(' ')[2]!)
  expect(await inner.get(acknowledged)).toHaveLength(ledger.length)
  const lanes = new Map<string, number[]>()
  for (const { lane, tags } of await inner.get(bench.behaviour.addedIds))
    lanes.set(lane!, [...(lanes.get(lane!) ?? []), Number(tags[0])])
  expect(lanes.size).toBeGreaterThan(8)
  for (const numbers of lanes.values()) expect(numbers).toEqual(numbers.map((_, at) => at))
  expect(readdirSync(spool)).toEqual([])
  await inner.close()
}, 120_000)
