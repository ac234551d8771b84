import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rate, result, type Bench, type Result } from '../harness.ts'
import { addDue } from './drain.ts'
import type { Order, WorkerReport } from './worker-process.ts'

const workerCounts = [1, 2, 4]

/**
 * Throughput of several worker processes on one store. Workers report every run, so that a letter
 * that ran twice is detected: without failures, none may.
 */
export async function workers(bench: Bench): Promise<Result[]> {
  const { kind, sizes } = bench
  if (kind === 'memory') return []
  const rates: number[] = []
  let twice = 0
  for (const workerCount of workerCounts) {
    await bench.clear()
    const count = workerCount === workerCounts.at(-1) ? sizes.drain : sizes.growth
    const queue = await bench.open('workers')
    await addDue(queue, count, 'charge-card')
    await queue.close()
    const drained = await drainWith(workerCount, bench.location.url('workers'), count)
    rates.push(rate(count, drained.tookMs))
    twice += drained.runs - count
    bench.log(
      `  ${workerCount} workers: ${Math.round(rates.at(-1)!)}/s, ${drained.runs} runs of ${count} letters`,
    )
  }
  return [
    ...workerCounts.map((workerCount, at) =>
      result(kind, `drain by ${workerCount} workers`, rates[at]!, '/s'),
    ),
    result(kind, 'letters that ran twice', twice, '', { atMost: 0 }),
  ]
}

async function drainWith(
  workerCount: number,
  url: string,
  count: number,
): Promise<{ tookMs: number; runs: number }> {
  const children = Array.from({ length: workerCount }, () =>
    fork(new URL('./worker-process.ts', import.meta.url), [url]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const seen = new Set<string>()
  let runs = 0
  const startMs = performance.now()
  const all = new Promise<number>((resolve) => {
    for (const child of children)
      child.on('message', (report: WorkerReport) => {
        if (report.kind !== 'ran') return
        runs += report.ids.length
        for (const id of report.ids) seen.add(id)
        if (seen.size === count) resolve(performance.now())
      })
  })
  for (const child of children) sendOrder(child, 'start')
  const tookMs = (await all) - startMs
  // Duplicate runs are reported before the worker exits.
  const ended = children.map((child) => once(child, 'exit'))
  for (const child of children) sendOrder(child, 'stop')
  await Promise.all(ended)
  return { tookMs, runs }
}

function sendOrder(child: ChildProcess, what: Order): void {
  child.send(what)
}
