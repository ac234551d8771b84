import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { sleep, type Clock } from '../../clock/clock.ts'
import { connect } from '../../connect/store.ts'
import { states } from '../../letter/letter.ts'
import { logObserver, type LoggerLike } from '../../observers/log.ts'
import type { AlertRule } from '../../policy/alert-rule.ts'
import { exponential } from '../../policy/backoff.ts'
import { DeadLetterQueue } from '../../queue/queue.ts'
import type { Store } from '../../store.ts'
import { fileOf, hideSecrets } from '../open.ts'
import { formatCount, toJson } from '../print.ts'
import { stoppedExit } from '../stop-on-signal.ts'
import { checkDemoStore } from './demo-store.ts'
import { createTraffic } from './traffic.ts'
import { openLiveView, openLogView, type View, type ViewOptions } from './view.ts'
import { terminal } from '../terminal.ts'

export interface DemoOptions {
  url: string
  /** Stops after this many seconds. Default: on a signal or a key. */
  seconds?: number
  json: boolean
  clock: Clock
}

const hourMs = 3_600_000
/** How long running calls may take to finish. */
const drainMs = 3000

/** Runs until it is stopped, drains, and prints what is stored and how to view it. */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { url, clock } = options
  const store = await openStore(url, clock)
  const dlq = await DeadLetterQueue.open(store, demoOptions(clock))
  const shop = createTraffic(dlq, clock)
  try {
    await checkDemoStore(store, shop.queues, url)
  } catch (error) {
    await dlq.close()
    throw error
  }
  const ended = new AbortController()
  const end = (interrupted: boolean): void => {
    if (interrupted) terminal.exitCode = stoppedExit
    if (ended.signal.aborted) terminal.exit(stoppedExit)
    ended.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    terminal.on(signal, () => end(signal === 'SIGINT'))
  const view = openView({ url, store, dlq, clock, traffic: shop, end }, options)
  dlq.start()
  const running = shop.run(ended.signal)
  if (options.seconds !== undefined) {
    await sleep(clock, options.seconds * 1000, ended.signal)
    ended.abort()
  }
  await running
  await dlq.stop({ drainMs })
  await view.close()
  if (!options.json && store.powers.durable) terminal.stdout.write(await formatClosing(store, url))
  await dlq.close()
}

/** Options of a production worker, but with seconds instead of minutes. */
export function demoOptions(clock: Clock) {
  return {
    clock,
    worker: `demo-${terminal.pid}`,
    backoff: exponential({ baseMs: 2000, factor: 2, maxMs: 12_000, jitter: 0.2 }),
    maxRetries: 4,
    graceMs: 1000,
    sweepMs: 2000,
    leaseMs: 10_000,
    alerts: [
      {
        name: 'many-parked',
        when: { metric: 'parked', above: 20 },
        severity: 'warning',
        hint: 'A release may be broken: check the largest group.',
      },
    ] satisfies AlertRule[],
    alertEveryMs: 5000,
    retention: { archiveAfterMs: 6 * hourMs, removeAfterMs: 48 * hourMs },
  }
}

async function openStore(url: string, clock: Clock): Promise<Store> {
  const file = fileOf(url)
  if (file !== undefined) mkdirSync(dirname(file), { recursive: true })
  return connect(url, clock)
}

function openView(view: ViewOptions, options: DemoOptions): View {
  if (options.json) return openJsonView(view)
  if (terminal.stdout.isTTY) return openLiveView(view)
  terminal.stdout.write(
    `redrive demo on ${hideSecrets(options.url)}: retries take seconds here, minutes by default\n`,
  )
  return openLogView(view)
}

/** The lines of the log observer. */
function openJsonView({ dlq, clock }: ViewOptions): View {
  const at = (level: string) => (fields: object, message: string) =>
    void terminal.stdout.write(`${toJson({ level, time: clock.now(), ...fields, message })}\n`)
  const logger: LoggerLike = {
    debug: () => {},
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
  const stop = dlq.on('*', logObserver(logger))
  return { close: async () => stop() }
}

async function formatClosing(store: Store, url: string): Promise<string> {
  const counts = await store.tally('state', { state: [...states] })
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const by = states.flatMap((state) => (counts.get(state) ? [`${counts.get(state)} ${state}`] : []))
  // Quoted for a shell.
  const at = /^[\w:@%+=,./-]+$/.test(url) ? url : `'${url.replaceAll("'", String.raw`'\''`)}'`
  return [
    `${formatCount(all, 'letter')} in ${url}${by.length > 0 ? ':' : '.'}`,
    ...(by.length > 0 ? [`  ${by.join(', ')}`] : []),
    'View them:',
    `  npx redrive list --store ${at}`,
    `  npx redrive stats --store ${at}`,
    'Run the demo again to continue with these letters.',
    '',
  ].join('\n')
}
