import { setTimeout } from 'node:timers/promises'
import { DeadLetterQueue } from '../../src/index.ts'

const runMs = 25

/*
 * A worker process that drains the store it is given, and tells which letters it ran. Each run takes
 * a while, as real ones do, so that one worker alone does not use up the machine.
 */

export type Order = 'start' | 'stop'
export type Told = { kind: 'ready' } | { kind: 'ran'; ids: string[] }

const queue = await DeadLetterQueue.open(process.argv[2]!, { maxConcurrent: 8 })
let ran: string[] = []

queue.handle('charge-card', async ({ letter }) => {
  await setTimeout(runMs)
  if (ran.push(letter.id) === 1) setImmediate(tell)
})

function tell(): void {
  if (ran.length > 0) say({ kind: 'ran', ids: ran.splice(0) })
}

function say(told: Told): void {
  process.send!(told)
}

process.on('message', (order: Order) => {
  if (order === 'start') queue.start()
  else void end()
})

async function end(): Promise<void> {
  await queue.stop()
  await queue.close()
  tell()
  process.disconnect()
}

say({ kind: 'ready' })
