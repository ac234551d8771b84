import type { Command } from 'commander'
import type { QueueOptions } from '../../options/options.ts'
import { addLetterAction } from '../letter-action.ts'
import type { ConfigOptions } from '../open.ts'
import { addConfigOptions } from './config.ts'

export function addReplay(program: Command): void {
  const command: Command = addLetterAction(program, {
    name: 'replay',
    description: 'publish letters to their source mailbox again',
    outcome: ({ state }) => (state === 'parked' ? 'parked at the replay limit' : 'published again'),
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

/** The mailboxes and the replay limit of the configuration. */
export async function replayOptions(options: ConfigOptions): Promise<QueueOptions> {
  const [{ examineConfig }, { invalidConfig }, { sourcesOf }] = await Promise.all([
    import('../../config/load.ts'),
    import('../../config/problems.ts'),
    import('../check-config.ts'),
  ])
  const examined = examineConfig(sourcesOf(options))
  if ('config' in examined) return pickReplayOptions(examined.config.options)
  if (examined.options === undefined) throw invalidConfig(examined.problems)
  return pickReplayOptions(examined.options)
}

function pickReplayOptions({ mailboxes, maxReplays }: QueueOptions): QueueOptions {
  return {
    ...(mailboxes === undefined ? {} : { mailboxes }),
    ...(maxReplays === undefined ? {} : { maxReplays }),
  }
}
