import { parseArgs } from 'node:util'
import { crashBulk } from './crash.ts'
import { replayThroughRestart } from './replay.ts'

export const usage = `npm run crash -- --bulk [options]

  --store sqlite:FILE   a new file (default: a temporary one)
  --store postgres      a private server; likewise redis
  --letters N           letters to retry (default: 100000)
  --kills N             kills of the process that runs the action (default: 10)
  --seed N              seed of all random choices (default: 1)

npm run crash -- --bulk-replay rabbitmq|kafka [--messages N]

  replays messages (default: 50000) while the private broker is restarted
`

/** Runs the crash test of bulk actions. Resolves with the exit code. */
export async function runBulk(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      bulk: { type: 'boolean' },
      store: { type: 'string' },
      letters: { type: 'string', default: '100000' },
      kills: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
    },
  })
  const { action, kills, repeated, problems } = await crashBulk({
    letters: Number(values.letters),
    kills: Number(values.kills),
    seed: Number(values.seed),
    ...(values.store === undefined ? {} : { store: values.store }),
  })
  const { state, progress } = action
  process.stdout.write(
    [
      ...problems.slice(0, 20),
      `${problems.length === 0 ? 'OK' : 'FAILED'}  ${state}, ${kills} kills, ${repeated} letters ran more than once, ${JSON.stringify(progress)}`,
      '',
    ].join('\n'),
  )
  return problems.length === 0 ? 0 : 1
}

/** Runs the test of a bulk replay. Resolves with the exit code. */
export async function runBulkReplay(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      'bulk-replay': { type: 'string', default: 'rabbitmq' },
      messages: { type: 'string', default: '50000' },
    },
  })
  const { action, repeated, problems } = await replayThroughRestart({
    broker: values['bulk-replay'] as 'rabbitmq' | 'kafka',
    messages: Number(values.messages),
  })
  process.stdout.write(
    [
      ...problems.slice(0, 20),
      `${problems.length === 0 ? 'OK' : 'FAILED'}  ${action.state}, ${repeated} messages arrived more than once, ${JSON.stringify(action.progress)}`,
      '',
    ].join('\n'),
  )
  return problems.length === 0 ? 0 : 1
}
