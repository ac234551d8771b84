import type { Command } from 'commander'
import { demoStore } from '../demo/demo-store.ts'
import { addConfigOptions } from './config.ts'

const examples = `
Examples:
  redrive serve                                on sqlite:redrive.db in this folder
  redrive serve --store postgres://db/app      several servers may share a store
  redrive serve --host 0.0.0.0 --port 80       needs a token: redrive tokens create
  redrive serve --pipeline graph.yaml          replays dead records of a pipeline
  redrive serve --demo                         with generated failures, to try it out

Serves the admin API, and redelivers the letters of the queues that have a
handler in the configuration. Without tokens in the store it listens on the
loopback address only, and prints a token that is valid until it stops.
SIGTERM and SIGINT stop it after requests and handlers have finished, or after
10 seconds. A second signal stops it at once.`

export function addServe(program: Command): void {
  addConfigOptions(program.command('serve'))
    .description('serve the admin API, and redeliver letters')
    .option('--host <address>', 'the address to listen on; default: 127.0.0.1')
    .option('--port <number>', 'the port to listen on; default: 7400; 0: any free port')
    .option(
      '--pipeline <file>',
      'YAML file with pipeline graphs: serves metrics and replay of their dead records',
    )
    .option('--kafka <url>', 'URL of the Kafka of the pipeline, if its file does not have it')
    .option(
      '--stop-delay <duration>',
      'after a signal, keep serving for this long, with /readyz at 503; default: 0s',
    )
    .option('--demo', `generate failing traffic, in ${demoStore} unless --store is given`)
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const { serve } = await import('../serve.ts')
      await serve(self.optsWithGlobals())
    })
}
