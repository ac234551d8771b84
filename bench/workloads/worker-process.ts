import { setTimeout } from 'node:timers/promises'
import { DeadLetterQueue } from '../../src/index.ts'

const runMs = 25

/*
 * A worker process that drains a store and reports the letters that it ran. Each run takes a while,
 * as real ones do, so that one worker does not use the whole machine.
 */

export type Order = 'start' | 'stop'
export type WorkerReport = { kind: 'ready' } | { kind: 'ran'; ids: string[] }

const queue = await DeadLetterQueue.open(process.argv[2]!, { maxConcurrent: 8 })
let ran: string[] = []

queue.handle('charge-card', async ({ letter }) => {
  await setTimeout(runMs)
  if (ran.push(letter.id) === 1) setImmediate(sendReport)
})

function sendReport(): void {
  if (ran.length > 0) send({ kind: 'ran', ids: ran.splice(0) })
}

function send(report: WorkerReport): void {
  process.send!(report)
}

process.on('message', (order: Order) => {
  if (order === 'start') queue.start()
  else void end()
})

async function end(): Promise<void> {
  await queue.stop()
  await queue.close()
  sendReport()
  process.disconnect()
}

send({ kind: 'ready' })
