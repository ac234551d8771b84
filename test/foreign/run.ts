// `npm run foreign`: tests Redrive with the real clients of other systems. Arguments select test
// files, as with vitest.
import { join } from 'node:path'
import { trySync } from '../processes.ts'
import { start, stop } from '../../scripts/servers/lifecycle.ts'
import { install } from '../../scripts/servers/install.ts'
import { servers } from '../../scripts/servers/table.ts'
import { needs } from './clients.ts'

const lacking = install(needs)
for (const [name, reason] of lacking) console.error(`${name} is missing: ${reason}`)
if (lacking.size > 0) process.exit(1)

const brokers = ['kafka', 'rabbitmq', 'nats']
// A broker in the environment is used instead of a private one.
const wanted = servers.filter(
  ({ name, variable }) => brokers.includes(name) && !process.env[variable],
)
const outcomes = wanted.length > 0 ? await start(wanted.map(({ name }) => name)) : []
for (const outcome of outcomes)
  if ('missing' in outcome) {
    console.error(`${outcome.name} is missing: ${outcome.missing}`)
    process.exitCode = 1
  }

const root = join(import.meta.dirname, '../..')
const vitest = join(root, 'node_modules', '.bin', 'vitest')
const config = join(import.meta.dirname, 'vitest.config.ts')
const args = ['run', '--config', config, ...process.argv.slice(2)]
const { status } = trySync(vitest, args, { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exitCode = 1

const started = outcomes.filter((outcome) => 'started' in outcome && outcome.started)
if (started.length > 0) await stop(started.map(({ name }) => name))
