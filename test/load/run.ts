import { parseArgs } from 'node:util'
import { backend } from '../servers/servers.ts'
import { load } from './load.ts'
import { formatMemory, memoryGrowth } from './memory.ts'
import { streamLines } from './streams.ts'

const usage = `npm run load -- [options]

  --store sqlite|postgres   default: sqlite
  --seconds N               duration of the mixed load (default: 60)
  --clients N               concurrent clients (default: 200)
  --seed N                  seed of all random choices (default: 1)
  --lines N                 instead: captures N lines in one request, exports and imports them
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    seconds: { type: 'string', default: '60' },
    clients: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    lines: { type: 'string' },
    help: { type: 'boolean' },
  },
})

async function runLoad(store: string | undefined): Promise<string[]> {
  const result = await load({
    seconds: Number(values.seconds),
    clients: Number(values.clients),
    seed: Number(values.seed),
    ...(store === undefined ? {} : { store }),
  })
  const { requests, acknowledged, letters, lost, repeated, problems, memoryBytes } = result
  const growth = memoryGrowth(memoryBytes)
  process.stdout.write(
    [
      `${requests} requests (${Math.round(requests / Number(values.seconds))}/s), statuses ${JSON.stringify(result.statuses)}`,
      `${acknowledged} captures acknowledged, ${letters} letters stored`,
      ...Object.entries(result.latency).map(
        ([kind, { p50, p99 }]) => `${kind.padEnd(8)} p50 ${p50} ms, p99 ${p99} ms`,
      ),
      `memory   ${formatMemory(memoryBytes[0] ?? 0)} at the start, ${formatMemory(Math.max(...memoryBytes))} at most, ${formatMemory(memoryBytes.at(-1) ?? 0)} at the end`,
      '',
    ].join('\n'),
  )
  return [
    ...lost.map((key) => `lost: ${key}`),
    ...repeated.map((key) => `stored twice: ${key}`),
    ...(letters === acknowledged ? [] : [`${letters} letters for ${acknowledged} captures`]),
    ...problems,
    ...(growth === undefined ? [] : [growth]),
  ]
}

async function runStreams(store: string | undefined, count: number): Promise<string[]> {
  const { captured, exported, imported, memoryBytes, rates } = await streamLines(count, store)
  process.stdout.write(
    [
      `${captured} lines captured (${rates.capture}/s), ${exported} exported, ${imported} imported (${rates.transfer}/s)`,
      ...Object.entries(memoryBytes).map(
        ([what, samples]) => `memory during ${what}: at most ${formatMemory(Math.max(...samples))}`,
      ),
      '',
    ].join('\n'),
  )
  const growths = Object.entries(memoryBytes).flatMap(([what, samples]) => {
    const growth = memoryGrowth(samples)
    return growth === undefined ? [] : [`${what}: ${growth}`]
  })
  const isComplete = [captured, exported, imported].every((one) => one === count)
  return [...(isComplete ? [] : [`not all of ${count} lines arrived`]), ...growths]
}

if (values.help || !['sqlite', 'postgres'].includes(values.store)) {
  process.stdout.write(usage)
  process.exit(values.help ? 0 : 2)
}
const server = values.store === 'postgres' ? backend('postgres') : undefined
if (server?.missing !== undefined) throw new Error(server.missing)
const problems = await (values.lines === undefined
  ? runLoad(server?.url)
  : runStreams(server?.url, Number(values.lines)))
process.stdout.write(
  [...problems.slice(0, 20), problems.length === 0 ? 'OK' : 'FAILED', ''].join('\n'),
)
process.exitCode = problems.length === 0 ? 0 : 1
