import type { Command } from 'commander'
import type { ConfigOptions } from '../open.ts'
import { takingConfig } from './config.ts'

const examples = `
Examples:
  redrive work                               as redrive.yaml in this folder says
  redrive work --config /etc/redrive.yaml
  redrive work --store sqlite:redrive.db --set maxConcurrent=20

It redelivers the letters of the queues that have a handler in the
configuration, writes a JSON line for every event, and runs until it is asked to
end: SIGTERM and SIGINT let running handlers finish, a second one does not wait
for them.`

export function addWork(program: Command): void {
  takingConfig(program.command('work'))
    .description('redeliver letters with the configured handlers')
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const { runWorker } = await import('../worker.ts')
      await runWorker(self.optsWithGlobals<ConfigOptions>())
    })
}
