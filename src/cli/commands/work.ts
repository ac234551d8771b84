import type { Command } from 'commander'
import type { ConfigOptions } from '../open.ts'
import { addConfigOptions } from './config.ts'

const examples = `
Examples:
  redrive work                               with redrive.yaml in this folder
  redrive work --config /etc/redrive.yaml
  redrive work --store sqlite:redrive.db --set maxConcurrent=20

Redelivers the letters of the queues that have a handler in the configuration,
and writes a JSON line for every event. SIGTERM and SIGINT stop the worker
after its running handlers have finished; a second signal stops it at once.`

export function addWork(program: Command): void {
  addConfigOptions(program.command('work'))
    .description('redeliver letters with the configured handlers')
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const { runWorker } = await import('../worker.ts')
      await runWorker(self.optsWithGlobals<ConfigOptions>())
    })
}
