import type { Command } from 'commander'
import { systemClock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { demoStore } from '../demo/demo-store.ts'
import type { GlobalOptions } from '../open.ts'
import { refuseServer } from '../remote/server.ts'

const examples = `
Examples:
  redrive demo
  redrive demo --seconds 10 | cat     without a terminal: a line for every event
  redrive demo --json                 the same as JSON log lines`

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description(`watch a worker handle failing calls; stores its letters in ${demoStore}`)
    .option('--seconds <count>', 'stop after this many seconds')
    .addHelpText('after', examples)
    .action(async (_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions & { seconds?: string }>()
      // The demo never uses REDRIVE_STORE.
      if (options.server ?? options.store) refuseServer(options, 'demo')
      const url = options.store ?? demoStore
      const { runDemo } = await import('../demo/demo.ts')
      return runDemo({
        url,
        json: options.json ?? false,
        clock: systemClock,
        ...readSeconds(options.seconds),
      })
    })
}

function readSeconds(text: string | undefined): { seconds?: number } {
  if (text === undefined) return {}
  const seconds = Number(text)
  if (seconds > 0) return { seconds }
  throw new RedriveError('INVALID_INPUT', `--seconds must be a number above 0, got "${text}"`)
}
