import type { Command } from 'commander'
import { withoutUndefined } from '../../check/keys.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { QueueOptions, QueuePolicy } from '../../options/options.ts'
import { addLetterAction } from '../letter-action.ts'
import type { ConfigOptions } from '../open.ts'
import { addConfigOptions } from './config.ts'

export function addReplay(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'replay',
    description: 'publish letters to their source mailbox again',
    outcome: describeOutcome,
    queueOptions: replayOptions,
    run: (dlq, id, by) => {
      const { to } = command.opts<{ to?: string }>()
      return dlq.replay(id, by, to === undefined ? {} : { to })
    },
    bulk: () => {
      const { to } = command.opts<{ to?: string }>()
      return { name: 'replay', options: to === undefined ? {} : { to }, until: 'finished' }
    },
  })
  addConfigOptions(command).option(
    '--to <mailbox>',
    'another mailbox, by its name in mailboxes of the configuration',
  )
}

function describeOutcome({ state, reason }: Pick<DeadLetter, 'state' | 'reason'>): string {
  if (state !== 'parked') return 'published again'
  return reason === 'replayed'
    ? 'published again, waiting for confirmation'
    : 'parked at the replay limit'
}

/** The mailboxes, the replay limit and the rules of the configuration. */
export async function replayOptions(options: ConfigOptions): Promise<QueueOptions> {
  const configured = await readConfigured(options)
  const { mailboxes, maxReplays } = configured
  return {
    ...rulesOf(configured),
    ...(mailboxes === undefined ? {} : { mailboxes }),
    ...(maxReplays === undefined ? {} : { maxReplays }),
  }
}

/** The rules of the configuration for edits, replays, retries, approvals and redaction. */
export async function ruleOptions(options: ConfigOptions): Promise<QueueOptions> {
  return rulesOf(await readConfigured(options))
}

/** The full-text search of the configuration. */
export async function searchOptions(options: ConfigOptions): Promise<QueueOptions> {
  const { search } = await readConfigured(options)
  return search === undefined ? {} : { search }
}

async function readConfigured(options: ConfigOptions): Promise<QueueOptions> {
  const [{ examineConfig }, { invalidConfig }, { sourcesOf }] = await Promise.all([
    import('../../config/load.ts'),
    import('../../config/problems.ts'),
    import('../check-config.ts'),
  ])
  const examined = examineConfig(sourcesOf(options))
  if ('config' in examined) return examined.config.options
  if (examined.options === undefined) throw invalidConfig(examined.problems)
  return examined.options
}

function rulesOf({ app, approval, queues = {}, ...all }: QueueOptions): QueueOptions {
  return {
    ...repairRulesOf(all),
    ...(app === undefined ? {} : { app }),
    ...(approval === undefined ? {} : { approval }),
    queues: Object.fromEntries(
      Object.entries(queues).map(([name, policy]) => [name, repairRulesOf(policy)]),
    ),
  }
}

function repairRulesOf({
  lockedHeaders,
  payloadSchema,
  replay,
  confirmReplayMs,
  requireFix,
  redact,
}: QueuePolicy): QueuePolicy {
  return withoutUndefined({
    lockedHeaders,
    payloadSchema,
    replay,
    confirmReplayMs,
    requireFix,
    redact,
  })
}
