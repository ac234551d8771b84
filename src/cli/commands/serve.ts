import type { Command } from 'commander'
import { addConfigOptions } from './config.ts'

const examples = `
Examples:
  redrive serve                                on sqlite:redrive.db in this folder
  redrive serve --store postgres://db/app      several servers may share a store
  redrive serve --host 0.0.0.0 --port 80       needs a token: redrive tokens create
  redrive serve --pipeline graph.yaml          replays dead records of a pipeline
  redrive serve --demo                         with failing traffic to look at

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
      'YAML file with the graphs whose dead records are measured and replayed',
    )
    .option('--kafka <url>', 'URL of the Kafka of the pipeline, if its file does not have it')
    .option(
      '--stop-delay <duration>',
      'after SIGTERM, serve so long while /readyz says 503; default: 0s',
    )
    .option('--demo', 'make failing calls on a store of its own, to look at')
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const { serve } = await import('../serve.ts')
      await serve(self.optsWithGlobals())
    })
}
