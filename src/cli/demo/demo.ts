import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { sleep, type Clock } from '../../clock/clock.ts'
import { connect } from '../../connect/store.ts'
import { RedriveError } from '../../errors.ts'
import { states } from '../../letter/letter.ts'
import { logObserver, type LoggerLike } from '../../observers/log.ts'
import { exponential } from '../../policy/backoff.ts'
import { DeadLetterQueue } from '../../queue.ts'
import type { Store } from '../../store.ts'
import { fileOf, hideSecrets } from '../open.ts'
import { counted, json, line } from '../print.ts'
import { stoppedExit } from '../stop-on-signal.ts'
import { traffic } from './traffic.ts'
import { liveView, logView, type View, type ViewOptions } from './view.ts'

export interface DemoOptions {
  url: string
  /** End after so long; else when asked to. */
  seconds?: number
  json: boolean
  clock: Clock
}

/** How long the calls that run may take to end. */
const drainMs = 3000

/** Runs until it is asked to end, drains, and says what is kept and how to look at it. */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { url, clock } = options
  const store = await openStore(url, clock)
  const dlq = await DeadLetterQueue.open(store, settings(clock))
  const shop = traffic(dlq, clock)
  await mustBeOurs(store, shop.queues, url)
  const ended = new AbortController()
  const end = (interrupted: boolean): void => {
    if (interrupted) process.exitCode = stoppedExit
    if (ended.signal.aborted) process.exit(stoppedExit)
    ended.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => end(signal === 'SIGINT'))
  const view = viewFor({ url, store, dlq, clock, traffic: shop, end }, options)
  dlq.start()
  const running = shop.run(ended.signal)
  if (options.seconds !== undefined) {
    await sleep(clock, options.seconds * 1000, ended.signal)
    ended.abort()
  }
  await running
  await dlq.stop({ drainMs })
  await view.close()
  if (!options.json && store.powers.durable) process.stdout.write(await farewell(store, url))
  await dlq.close()
}

/** As a worker in production has them, but with seconds for minutes. */
function settings(clock: Clock) {
  return {
    clock,
    worker: `demo-${process.pid}`,
    backoff: exponential({ baseMs: 2000, factor: 2, maxMs: 12_000, jitter: 0.2 }),
    maxRetries: 4,
    graceMs: 1000,
    sweepMs: 2000,
    leaseMs: 10_000,
    retention: { archiveAfterMs: 5 * 60_000, removeAfterMs: 30 * 60_000 },
  }
}

async function openStore(url: string, clock: Clock): Promise<Store> {
  const file = fileOf(url)
  if (file !== undefined) mkdirSync(dirname(file), { recursive: true })
  return connect(url, clock)
}

/** A worker parks what it has no handler for, which is no joke on a store that somebody needs. */
async function mustBeOurs(store: Store, ours: readonly string[], url: string): Promise<void> {
  const kept = await store.tally('queue', { state: [...states] })
  const foreign = [...kept.keys()].find((queue) => !ours.includes(queue))
  if (foreign === undefined) return
  await store.close()
  throw new RedriveError(
    'INVALID_INPUT',
    `${hideSecrets(url)} holds letters of ${line(foreign)}, which are not the demo's: give it a store of its own with --store`,
  )
}

function viewFor(view: ViewOptions, options: DemoOptions): View {
  if (options.json) return jsonView(view)
  if (process.stdout.isTTY) return liveView(view)
  process.stdout.write(
    `redrive demo on ${hideSecrets(options.url)}: letters move within seconds here, by default within minutes\n`,
  )
  return logView(view)
}

/** The lines of the log observer. */
function jsonView({ dlq, clock }: ViewOptions): View {
  const at = (level: string) => (fields: object, message: string) =>
    void process.stdout.write(`${json({ level, time: clock.now(), ...fields, message })}\n`)
  const logger: LoggerLike = {
    debug: () => {},
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
  const stop = dlq.on('*', logObserver(logger))
  return { close: async () => stop() }
}

async function farewell(store: Store, url: string): Promise<string> {
  const counts = await store.tally('state', { state: [...states] })
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const by = states.flatMap((state) => (counts.get(state) ? [`${counts.get(state)} ${state}`] : []))
  // For the shell that it is pasted into.
  const at = /^[\w:@%+=,./-]+$/.test(url) ? url : `'${url.replaceAll("'", String.raw`'\''`)}'`
  return [
    `${counted(all, 'letter')} in ${url}${by.length > 0 ? ':' : '.'}`,
    ...(by.length > 0 ? [`  ${by.join(', ')}`] : []),
    'Look at them:',
    `  npx redrive list --store ${at}`,
    `  npx redrive stats --store ${at}`,
    'Start the demo again and it goes on from here.',
    '',
  ].join('\n')
}
