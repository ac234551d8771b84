import type { Command } from 'commander'
import type { WorkerOptions } from '../worker.ts'
import { addConfigOptions } from './config.ts'

const examples = `
Examples:
  redrive work                               with redrive.yaml in this folder
  redrive work --config /etc/redrive.yaml
  redrive work --store sqlite:redrive.db --set maxConcurrent=20
  redrive work --metrics-port 9464           metrics for Prometheus

Redelivers the letters of the queues that have a handler in the configuration,
and writes a JSON line for every event. SIGTERM and SIGINT stop the worker
after its running handlers have finished; a second signal stops it at once.`

export function addWork(program: Command): void {
  addConfigOptions(program.command('work'))
    .description('redeliver letters with the configured handlers')
    .option('--metrics-port <number>', 'serve GET /metrics on this port; 0: any free port')
    .option('--metrics-host <address>', 'the address for it; default: 127.0.0.1')
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const { runWorker } = await import('../worker.ts')
      await runWorker(self.optsWithGlobals<WorkerOptions>())
    })
}
