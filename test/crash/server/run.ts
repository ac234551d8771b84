import { parseArgs } from 'node:util'
import { backend } from '../../servers/servers.ts'
import { crashServer } from './crash.ts'

export const usage = `npm run crash -- --server [options]

  --store sqlite        a temporary file (default); or sqlite:FILE, a new file
  --store postgres      the running test server, in a new schema; or postgres://…
  --seconds N           duration of the faults (default: 60)
  --clients N           clients that capture (default: 32)
  --signals NAME        kill, terminate or both (default: both)
  --seed N              seed of all random choices (default: 1)
  --bug                 plants a server that acknowledges too early, which must be caught
`

/** Runs the crash test of the server. Resolves with the exit code. */
export async function runServer(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      server: { type: 'boolean' },
      store: { type: 'string', default: 'sqlite' },
      seconds: { type: 'string', default: '60' },
      clients: { type: 'string', default: '32' },
      signals: { type: 'string', default: 'both' },
      seed: { type: 'string', default: '1' },
      bug: { type: 'boolean', default: false },
    },
  })
  const store = values.store === 'postgres' ? backend('postgres').url : values.store
  const { lost, repeated, problems, ...counts } = await crashServer({
    seconds: Number(values.seconds),
    clients: Number(values.clients),
    seed: Number(values.seed),
    signals: values.signals as 'kill' | 'terminate' | 'both',
    hasBug: values.bug,
    ...(store === 'sqlite' ? {} : { store }),
  })
  const violations = [
    ...lost.map((key) => `lost: ${key}`),
    ...repeated.map((key) => `stored twice: ${key}`),
    ...problems,
  ]
  const isOk = values.bug ? lost.length > 0 : violations.length === 0
  const verdict = values.bug ? (isOk ? 'CAUGHT' : 'NOT CAUGHT') : isOk ? 'OK' : 'FAILED'
  process.stdout.write(
    [
      ...violations.slice(0, 20),
      `${verdict}  ${JSON.stringify({ ...counts, lost: lost.length, repeated: repeated.length })}`,
      '',
    ].join('\n'),
  )
  return isOk ? 0 : 1
}
