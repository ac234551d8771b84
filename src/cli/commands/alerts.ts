import type { Command } from 'commander'
import { toMs } from '../../letter/time.ts'
import type { AlertDelivery, TargetTest } from '../../observers/alerts/alerts.ts'
import type { AlertChange } from '../../observers/alerts/change.ts'
import type { DeliveryState } from '../../observers/notify/delivery.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import { readLimit } from '../filter.ts'
import { withQueue, type ConfigOptions, type GlobalOptions } from '../open.ts'
import {
  escapeLine,
  formatRelativeTime,
  formatTimestamp,
  printEither,
  printRows,
  type Column,
  type Style,
} from '../print.ts'
import { findServer } from '../remote/server.ts'
import { userName } from '../user-name.ts'
import { addConfigOptions } from './config.ts'
import { terminal } from '../terminal.ts'

interface ListOptions extends GlobalOptions {
  limit: string
}

interface AcknowledgeOptions extends GlobalOptions {
  note?: string
  by?: string
}

const examples = `
Examples:
  redrive alerts list                      alerts that are raised now
  redrive alerts history -n 50             raised and cleared, newest first
  redrive alerts deliveries                notifications and their state
  redrive alerts acknowledge nearly-full --note "we add space"
  redrive alerts test team                 send a test to a target of notify`

export function addAlerts(program: Command): void {
  const alerts = program
    .command('alerts')
    .description('list and acknowledge alerts, and test their targets')
    .addHelpText('after', examples)
  addLists(alerts)
  alerts
    .command('acknowledge')
    .alias('ack')
    .argument('<name>', 'name of the alert')
    .description('end the reminders of a raised alert until it clears')
    .option('--note <text>', 'what you know about it')
    .option('--by <name>', 'your name')
    .action((name: string, _, self: Command) => {
      const options = self.optsWithGlobals<AcknowledgeOptions>()
      return withQueue(options, async ({ dlq }) => {
        const { note, by = userName() } = options
        const alert = await dlq.acknowledgeAlert(name, by, note)
        printEither(options, alert, `${escapeLine(name)} is acknowledged.\n`)
      })
    })
  addConfigOptions(alerts.command('test'))
    .argument('<target>', 'name of the target in notify')
    .description('send a test to a target; exit code 1 if it was not delivered')
    .action((name: string, _, self: Command) =>
      testTarget(name, self.optsWithGlobals<ConfigOptions>()),
    )
}

function addLists(alerts: Command): void {
  alerts
    .command('list')
    .description('list alerts that are raised now')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withQueue(options, async ({ dlq, clock }) => {
        const raised = await dlq.alerts()
        printRows(options, raised, alertColumns(raised, clock.now()), 'No alert is raised.')
      })
    })
  alerts
    .command('history')
    .description('list alerts that were raised and cleared, newest first')
    .option('-n, --limit <count>', 'maximum number', '20')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<ListOptions>()
      return withQueue(options, async ({ dlq }) => {
        const changes = await dlq.alertHistory(readCount(options))
        printRows(options, changes, changeColumns, 'No alert was raised yet.')
      })
    })
  alerts
    .command('deliveries')
    .description('list notifications and their state, newest first')
    .option('-n, --limit <count>', 'maximum number', '20')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<ListOptions>()
      return withQueue(options, async ({ dlq }) => {
        const deliveries = await dlq.alertDeliveries(readCount(options))
        printRows(options, deliveries, deliveryColumns, 'No notification was sent yet.')
      })
    })
}

const maxListed = 500

function readCount({ limit }: ListOptions): number {
  return Math.min(maxListed, readLimit(limit))
}

async function testTarget(name: string, options: ConfigOptions): Promise<void> {
  const server = await findServer(options)
  const result = server
    ? await server.client.testAlertTarget({ target: name })
    : await testConfiguredTarget(name, options)
  const { sent, kind, answer } = result
  const text = `${escapeLine(name)} (${kind}): ${sent ? 'sent' : 'not sent'}, ${escapeLine(answer)}\n`
  printEither(options, result, text)
  if (!sent) terminal.exitCode = 1
}

async function testConfiguredTarget(name: string, options: ConfigOptions): Promise<TargetTest> {
  const [{ loadConfig }, { sourcesOf }, { Alerts }, { memoryStore }, { systemClock: clock }] =
    await Promise.all([
      import('../../config/load.ts'),
      import('../check-config.ts'),
      import('../../observers/alerts/alerts.ts'),
      import('../../stores/memory/memory.ts'),
      import('../../clock/clock.ts'),
    ])
  const { notify: targets, options: queueOptions, server } = loadConfig(sourcesOf(options))
  // A test reads and writes no record.
  const store = memoryStore({ clock })
  const alerts = new Alerts({
    store,
    clock,
    targets,
    baseUrl: queueOptions.baseUrl ?? server.publicUrl,
  })
  return alerts.test(name)
}

const severityStyle = ({ severity }: Alert): Style => (severity === 'critical' ? 'red' : 'yellow')

function alertColumns(alerts: readonly Alert[], nowMs: number): Column<Alert>[] {
  const acknowledgedBy: Column<Alert> = {
    title: 'ACKNOWLEDGED BY',
    cell: ({ acknowledged }) => escapeLine(acknowledged?.by ?? ''),
  }
  return [
    { title: 'SEVERITY', cell: ({ severity }) => severity, style: severityStyle },
    { title: 'SINCE', cell: ({ raisedAt }) => formatRelativeTime(toMs(raisedAt), nowMs) },
    { title: 'ALERT', cell: ({ name }) => escapeLine(name), minWidth: 12 },
    ...(alerts.some(({ acknowledged }) => acknowledged) ? [acknowledgedBy] : []),
    { title: 'SUMMARY', cell: ({ summary }) => escapeLine(summary), minWidth: 12 },
  ]
}

const changeColumns: Column<AlertChange>[] = [
  { title: 'AT', cell: ({ at }) => formatTimestamp(at) },
  {
    title: 'STATE',
    cell: ({ state }) => state,
    style: ({ state, alert }) => (state === 'cleared' ? 'green' : severityStyle(alert)),
  },
  { title: 'ALERT', cell: ({ alert }) => escapeLine(alert.name), minWidth: 12 },
  { title: 'SUMMARY', cell: ({ alert }) => escapeLine(alert.summary), minWidth: 12 },
]

const deliveryStyle: Record<DeliveryState, Style> = {
  waiting: 'yellow',
  sending: 'yellow',
  delivered: 'green',
  failed: 'red',
}

const deliveryColumns: Column<AlertDelivery>[] = [
  { title: 'AT', cell: ({ createdAt }) => formatTimestamp(createdAt) },
  { title: 'TARGET', cell: ({ target }) => escapeLine(target), minWidth: 6 },
  { title: 'STATE', cell: ({ state }) => state, style: ({ state }) => deliveryStyle[state] },
  { title: 'TRIES', cell: ({ attempts }) => String(attempts), alignRight: true },
  {
    title: 'ALERTS',
    cell: ({ changes }) => escapeLine(changes.map(({ alert }) => alert.name).join(', ')),
    minWidth: 10,
  },
  { title: 'ANSWER', cell: ({ answer = '' }) => escapeLine(answer), minWidth: 10 },
]
