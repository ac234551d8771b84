import type { Page } from 'playwright-core'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeHistory } from '../../src/cli/demo/history.ts'
import { demoPipeline } from '../../src/cli/demo/pipeline.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { openDashboard, type OpenStore, type TestDashboard } from './a-dashboard.ts'

/** A page of the dashboard: its name and its path. */
export type SamplePage = readonly [name: string, path: string]

/** Pages that exist without data. */
export const emptyPages: SamplePage[] = [
  ['overview', '/'],
  ['letters', '/letters'],
  ['groups', '/groups'],
  ['bulk-actions', '/bulk-actions'],
  ['queues', '/queues'],
  ['pipeline', '/pipeline'],
  ['workers', '/workers'],
  ['mailboxes', '/mailboxes'],
  ['alerts', '/alerts'],
]

export interface SampleDashboard extends TestDashboard {
  pages: SamplePage[]
}

/** An SQLite store with letters and samples of the last 24 hours. */
const openWithHistory: OpenStore = async () => {
  const path = await mkdtemp(join(tmpdir(), 'redrive-sample-'))
  const file = join(path, 'letters.db')
  await writeHistory(`sqlite:${file}`, systemClock.now())
  const store = sqliteStore({ path: file, clock: systemClock })
  return { store, remove: () => rm(path, { recursive: true, force: true }) }
}

/** A dashboard with data on every page. */
export async function openSampleDashboard(
  open: OpenStore = openWithHistory,
): Promise<SampleDashboard> {
  const dashboard = await openDashboard(
    open,
    {
      alerts: [{ name: 'parked', when: { metric: 'parked', above: 0 }, severity: 'warning' }],
      alertEveryMs: 1000,
      approval: { above: 1000 },
    },
    {
      pipeline: demoPipeline(systemClock),
      effectiveSettings: [
        { key: 'store', value: 'sqlite:redrive.db', from: '--store' },
        { key: 'maxRetries', value: 5, from: 'redrive.yaml' },
        { key: 'queues.charge-card.budget.perSecond', value: 20, from: 'redrive.yaml' },
        { key: 'retention.removeAfterMs', value: 2_592_000_000, from: 'REDRIVE_RETENTION' },
        { key: 'maxConcurrent', value: 10, from: 'default' },
      ],
    },
  )
  const loop = openLoop(dashboard)
  const close = async (): Promise<void> => {
    await loop.close()
    await dashboard.close()
  }
  return { ...dashboard, close, pages: await fillDashboard(dashboard) }
}

/** Runs a loop that processes one message, for the page of mailboxes. */
function openLoop({ dlq }: TestDashboard): { close: () => Promise<void> } {
  const requests = memoryMailbox({ name: 'shipments', clock: systemClock })
  const loop = new MainLoop({
    name: 'shipper',
    requests,
    clock: systemClock,
    process: () => ({ sent: true }),
  })
  dlq.reportLoops(loop)
  const running = Promise.all([loop.run(), requests.send({ order: 1 })])
  return {
    close: async () => {
      await loop.shutdown()
      await running
    },
  }
}

const failures = [
  { queue: 'charge-card', name: 'TimeoutError', message: 'payments-api did not answer in 5 s' },
  { queue: 'charge-card', name: 'CardError', message: 'the card 4242 was declined', status: 402 },
  { queue: 'render-invoice', name: 'TypeError', message: 'invoice has no lines' },
  { queue: 'summarise-ticket', name: 'RateLimitError', message: 'Too Many Requests', status: 429 },
  { queue: 'send-mail', name: 'Error', message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' },
] as const

const stack = (name: string, message: string): string =>
  `${name}: ${message}\n    at chargeCard (/app/src/charge-card.ts:41:11)\n    at run (/app/node_modules/queue/run.js:7:3)`

/** Stores letters in all states, and everything else that pages show. Returns the pages. */
async function fillDashboard({ client, dlq }: TestDashboard): Promise<SamplePage[]> {
  dlq.handle('charge-card', () => {
    throw new Error('the card was declined again')
  })
  const ids: string[] = []
  for (let at = 0; at < 40; at++) {
    const { queue, ...error } = failures[at % failures.length]!
    const captured = await client.capture({
      queue,
      json: { order: 1000 + at, amount: 20 * at, items: [{ sku: 'A-7', count: 2 }] },
      error: { ...error, stack: stack(error.name, error.message) },
      tenant: at % 2 ? 'acme' : 'globex',
      tags: ['checkout', `batch-${at % 3}`],
      metadata: { region: 'eu', attempt: at },
      headers: { 'content-type': 'application/json' },
      ...(at % 2 ? { maxRetries: 0 } : {}),
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    })
    ids.push(captured.id)
  }
  const [id, resolved, archived, , parked] = ids as [string, string, string, string, string]
  await client.editLetter({ id, json: { order: 1000, amount: 25 }, reason: 'wrong amount' })
  await client.noteLetter({ id, text: 'The customer called.' })
  await client.parkLetter({ id: parked, note: 'ask finance' })
  await client.archiveLetter({ id: archived })
  await client.resolveLetter({ id: resolved })
  const plan = await client.planBulkAction({
    action: 'tag',
    filter: { queue: 'send-mail' },
    addTags: ['seen'],
    reason: 'mark them',
  })
  await client.runBulkAction({ id: plan.id })
  const { fingerprint } = (await client.listGroups({ queue: 'charge-card' })).items[0]!
  await client.assignGroup({ fingerprint, assignee: 'mia' })
  await client.noteGroup({ fingerprint, text: 'Seen since the deploy of 2.4.1.' })
  await client.pauseQueue({ queue: 'send-mail', reason: 'the mail server is moved' })
  await client.createView({ name: 'Charges', filter: { queue: 'charge-card' }, shared: true })
  return [
    ['overview', '/'],
    ['letters', '/letters'],
    ['letters-filtered', '/letters?queue=charge-card&state=parked'],
    ['letter', `/letters/${id}`],
    ['groups', '/groups'],
    ['group', `/groups/${encodeURIComponent(fingerprint)}`],
    ['bulk-actions', '/bulk-actions'],
    ['bulk-action', `/bulk-actions/${plan.id}`],
    ['queues', '/queues'],
    ['queue', '/queues/charge-card'],
    ['pipeline', '/pipeline'],
    ['workers', '/workers'],
    ['mailboxes', '/mailboxes'],
    ['alerts', '/alerts'],
    ['settings', '/settings'],
    ['tokens', '/settings/tokens'],
    ['audit', '/settings/audit'],
  ]
}

/** Waits until the page has its heading and nothing is loading any more. */
export async function waitUntilLoaded(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  const loading = page.locator('[aria-busy="true"], .mantine-Skeleton-root')
  await loading.first().waitFor({ state: 'detached' })
}
