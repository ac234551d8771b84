import { existsSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { lacksPrivate } from '../../servers/private.ts'
import { bugNames, type BugName } from './bugs.ts'
import { crash, type CrashSettings } from './crash.ts'
import { found, inWords, verdictOf, type Verdict } from './verdict.ts'

export const usage = `npm run crash -- --mailbox WHERE [options]

  --mailbox sqlite:FILE  a file that does not exist yet; sqlite for a temporary one
  --mailbox postgres     a server of its own, which is also restarted; likewise redis, rabbitmq
  --seconds N            how long faults are injected (30, or 20 with a bug)
  --consumers N          processes that run a loop (4)
  --seed N               decides the choices of killer and producer (1)
  --bug NAME             plants a bug, which must be caught: ${bugNames.join(', ')}
  --bugs                 each of them in turn
  --json FILE            writes the verdict
  --keep                 leaves the ledgers in the temporary folder
`

export class UsageError extends Error {}

/** The crash test of mailboxes. Resolves with the code to exit with. */
export async function runMailbox(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      mailbox: { type: 'string', default: 'sqlite' },
      seconds: { type: 'string' },
      consumers: { type: 'string', default: '4' },
      seed: { type: 'string', default: '1' },
      bug: { type: 'string' },
      bugs: { type: 'boolean', default: false },
      json: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  })
  const planted = values.bug !== undefined || values.bugs
  const mailbox = placeOf(values.mailbox, values.bugs)
  const settings: CrashSettings = {
    seconds: count('seconds', values.seconds ?? (planted ? '20' : '30'), 1),
    consumers: count('consumers', values.consumers, 2),
    seed: count('seed', values.seed, 0),
    keep: values.keep,
    ...(mailbox === undefined ? {} : { mailbox }),
    ...(values.bug === undefined ? {} : { bug: bugNamed(values.bug) }),
  }
  const verdicts: Verdict[] = []
  for (const bug of values.bugs ? bugNames : [settings.bug]) {
    const verdict = verdictOf(await crash({ ...settings, ...(bug ? { bug } : {}) }))
    verdicts.push(verdict)
    process.stdout.write(values.bugs ? caughtLine(verdict) : inWords(verdict))
  }
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify(values.bugs ? verdicts : verdicts[0], null, 2)}\n`)
  return verdicts.every(({ ok }) => ok) ? 0 : 1
}

function count(name: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new UsageError(`--${name} must be a whole number from ${least} on`)
}

/** Undefined: a temporary file. */
function placeOf(mailbox: string, everyBug: boolean): string | undefined {
  if (mailbox === 'sqlite') return undefined
  if (mailbox === 'postgres' || mailbox === 'redis' || mailbox === 'rabbitmq') {
    const lacking = lacksPrivate[mailbox]()
    if (lacking) throw new UsageError(lacking)
    return mailbox
  }
  if (!mailbox.startsWith('sqlite:'))
    throw new UsageError('--mailbox must be sqlite:FILE, postgres, redis or rabbitmq')
  if (everyBug) throw new UsageError('--bugs needs a new file for each: say --mailbox sqlite')
  if (existsSync(mailbox.slice('sqlite:'.length)))
    throw new UsageError(`${mailbox} exists already: name a new file`)
  return mailbox
}

function bugNamed(name: string): BugName {
  const known = bugNames.find((bug) => bug === name)
  if (!known) throw new UsageError(`no bug ${name}: known are ${bugNames.join(', ')}`)
  return known
}

function caughtLine(verdict: Verdict): string {
  const shown = found(verdict).map((kind) => `${kind} ${verdict[kind]}`)
  return `${(verdict.bug ?? '').padEnd(22)}${verdict.ok ? 'caught' : 'NOT CAUGHT'}  ${shown.join(', ')}\n`
}
