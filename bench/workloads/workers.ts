import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rate, result, type Bench, type Result } from '../harness.ts'
import { addDue } from './drain.ts'
import type { Order, Told } from './worker-process.ts'

const crews = [1, 2, 4]

/**
 * How fast several worker processes drain one store. Every run of every letter is told, so that one that ran twice would
 * show: nothing fails here, so nothing may.
 */
export async function workers(bench: Bench): Promise<Result[]> {
  const { kind, sizes } = bench
  if (kind === 'memory') return []
  const rates: number[] = []
  let twice = 0
  for (const crew of crews) {
    await bench.clear()
    const count = crew === crews.at(-1) ? sizes.drain : sizes.growth
    const queue = await bench.open('workers')
    await addDue(queue, count, 'charge-card')
    await queue.close()
    const drained = await drainedBy(crew, bench.ground.url('workers'), count)
    rates.push(rate(count, drained.tookMs))
    twice += drained.runs - count
    bench.say(
      `  ${crew} workers: ${Math.round(rates.at(-1)!)}/s, ${drained.runs} runs of ${count} letters`,
    )
  }
  return [
    ...crews.map((crew, at) => result(kind, `drain by ${crew} workers`, rates[at]!, '/s')),
    result(kind, 'letters that ran twice', twice, '', { atMost: 0 }),
  ]
}

async function drainedBy(
  crew: number,
  url: string,
  count: number,
): Promise<{ tookMs: number; runs: number }> {
  const children = Array.from({ length: crew }, () =>
    fork(new URL('./worker-process.ts', import.meta.url), [url]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const seen = new Set<string>()
  let runs = 0
  const startMs = performance.now()
  const all = new Promise<number>((resolve) => {
    for (const child of children)
      child.on('message', (told: Told) => {
        if (told.kind !== 'ran') return
        runs += told.ids.length
        for (const id of told.ids) seen.add(id)
        if (seen.size === count) resolve(performance.now())
      })
  })
  for (const child of children) order(child, 'start')
  const tookMs = (await all) - startMs
  // Whatever runs once too often is told before the worker ends.
  const ended = children.map((child) => once(child, 'exit'))
  for (const child of children) order(child, 'stop')
  await Promise.all(ended)
  return { tookMs, runs }
}

function order(child: ChildProcess, what: Order): void {
  child.send(what)
}
