import { existsSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { lacksPrivate } from '../../servers/private.ts'
import { bugNames, type BugName } from './bugs.ts'
import { crash, type CrashSettings } from './crash.ts'
import { listViolations, formatVerdict, verdictOf, type Verdict } from './verdict.ts'

export const usage = `npm run crash -- --mailbox WHERE [options]

  --mailbox sqlite:FILE  a new file; sqlite for a temporary one
  --mailbox postgres     a private server, which is also restarted; likewise redis, rabbitmq
  --seconds N            duration of the faults (default: 30, with a bug 20)
  --consumers N          processes that run a loop (default: 4)
  --seed N               seed of all random choices (default: 1)
  --bug NAME             plants a bug that must be caught: ${bugNames.join(', ')}
  --bugs                 runs once with each bug
  --json FILE            writes the verdict
  --keep                 keeps the ledgers in the temporary folder
`

export class UsageError extends Error {}

/** Runs the crash test of mailboxes. Resolves with the exit code. */
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
  const hasBug = values.bug !== undefined || values.bugs
  const mailbox = parseMailbox(values.mailbox, values.bugs)
  const settings: CrashSettings = {
    seconds: count('seconds', values.seconds ?? (hasBug ? '20' : '30'), 1),
    consumers: count('consumers', values.consumers, 2),
    seed: count('seed', values.seed, 0),
    keep: values.keep,
    ...(mailbox === undefined ? {} : { mailbox }),
    ...(values.bug === undefined ? {} : { bug: parseBugName(values.bug) }),
  }
  const verdicts: Verdict[] = []
  for (const bug of values.bugs ? bugNames : [settings.bug]) {
    const verdict = verdictOf(await crash({ ...settings, ...(bug ? { bug } : {}) }))
    verdicts.push(verdict)
    process.stdout.write(values.bugs ? formatCaught(verdict) : formatVerdict(verdict))
  }
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify(values.bugs ? verdicts : verdicts[0], null, 2)}\n`)
  return verdicts.every(({ ok }) => ok) ? 0 : 1
}

function count(name: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new UsageError(`--${name} must be an integer of at least ${least}`)
}

/** Undefined: a temporary file. */
function parseMailbox(mailbox: string, everyBug: boolean): string | undefined {
  if (mailbox === 'sqlite') return undefined
  if (mailbox === 'postgres' || mailbox === 'redis' || mailbox === 'rabbitmq') {
    const lacking = lacksPrivate[mailbox]()
    if (lacking) throw new UsageError(lacking)
    return mailbox
  }
  if (!mailbox.startsWith('sqlite:'))
    throw new UsageError('--mailbox must be sqlite:FILE, postgres, redis or rabbitmq')
  if (everyBug) throw new UsageError('--bugs needs a new file for each bug; use --mailbox sqlite')
  if (existsSync(mailbox.slice('sqlite:'.length)))
    throw new UsageError(`${mailbox} already exists; use a new file`)
  return mailbox
}

function parseBugName(name: string): BugName {
  const known = bugNames.find((bug) => bug === name)
  if (!known) throw new UsageError(`unknown bug ${name}; known bugs: ${bugNames.join(', ')}`)
  return known
}

function formatCaught(verdict: Verdict): string {
  const violations = listViolations(verdict).map((kind) => `${kind} ${verdict[kind]}`)
  return `${(verdict.bug ?? '').padEnd(22)}${verdict.ok ? 'caught' : 'NOT CAUGHT'}  ${violations.join(', ')}\n`
}
