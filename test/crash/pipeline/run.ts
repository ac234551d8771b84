import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { lacksPrivate } from '../../servers/private.ts'
import { UsageError } from '../mailbox/run.ts'
import { bugNames } from './plan.ts'
import { faults, listViolations, soak, type SoakSettings, type Verdict } from './soak.ts'

export const usage = `npm run crash -- --pipeline [options]

  --records N            records sent through a node, of which 5 % fail (default: 50000)
  --consumers N          processes of the consumer group (default: 4)
  --work-ms N            duration of the module (default: 20)
  --restarts N           restarts of the private broker (default: 2)
  --transactional        commits results and offsets in one transaction
  --seed N               seed of all random choices (default: 1)
  --limit N              seconds without progress after which the run is stuck (default: 120)
  --bug NAME             plants a bug that must be caught: ${bugNames.join(', ')}
  --bugs                 runs once with each bug
  --json FILE            writes the verdict
`

/** Runs the soak test of pipelines. Resolves with the exit code. */
export async function runPipeline(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      pipeline: { type: 'boolean' },
      records: { type: 'string' },
      consumers: { type: 'string', default: '4' },
      'work-ms': { type: 'string', default: '20' },
      restarts: { type: 'string', default: '2' },
      transactional: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      limit: { type: 'string', default: '120' },
      bug: { type: 'string' },
      bugs: { type: 'boolean', default: false },
      json: { type: 'string' },
    },
  })
  const lacking = lacksPrivate.kafka()
  if (lacking) throw new UsageError(lacking)
  const hasBug = values.bugs || values.bug !== undefined
  const settings: SoakSettings = {
    records: count('records', values.records ?? (hasBug ? '5000' : '50000'), 100),
    poisons: 3,
    consumers: count('consumers', values.consumers, 2),
    workMs: count('work-ms', values['work-ms'], 0),
    restarts: count('restarts', values.restarts, 0),
    seed: count('seed', values.seed, 0),
    limitSeconds: count('limit', values.limit, 1),
    transactional: values.transactional,
    ...(process.stderr.isTTY ? { log: (line) => process.stderr.write(`${line}\n`) } : {}),
  }
  const bug = bugNames.find((name) => name === values.bug)
  if (values.bug !== undefined && !bug)
    throw new UsageError(`unknown bug ${values.bug}; known bugs: ${bugNames.join(', ')}`)
  const verdicts: Verdict[] = []
  let isOk = true
  for (const bugOfRun of values.bugs ? bugNames : [bug]) {
    const verdict = await soak({ ...settings, ...(bugOfRun ? { bug: bugOfRun } : {}) })
    verdicts.push(verdict)
    const kinds = listViolations(verdict)
    isOk &&= bugOfRun ? kinds.length > 0 : kinds.length === 0
    process.stdout.write(
      bugOfRun
        ? `${bugOfRun.padEnd(22)}${kinds.length > 0 ? 'caught' : 'NOT CAUGHT'}  ${kinds.join(', ')}\n`
        : formatVerdict(verdict),
    )
  }
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify(values.bugs ? verdicts : verdicts[0], null, 2)}\n`)
  return isOk ? 0 : 1
}

function count(name: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new UsageError(`--${name} must be an integer of at least ${least}`)
}

function formatVerdict(verdict: Verdict): string {
  const { records, routed, dead, kills, pauses, joins, leaves, restarts, seconds } = verdict
  const counts = faults.map((kind) => `  ${kind.padEnd(10)}${verdict[kind]}`)
  return [
    `${records} records: ${routed} routed, ${dead} dead, in ${seconds.toFixed(0)} s`,
    `${kills} kills, ${pauses} pauses, ${joins} joins, ${leaves} leaves, ${restarts} restarts of the broker`,
    ...counts,
    `  unlucky   ${verdict.unlucky}`,
    `  duplicates routed ${verdict.duplicatesRouted}, dead ${verdict.duplicatesDead}`,
    `  runs of poison: ${JSON.stringify(verdict.poisonRuns)}`,
    ...verdict.examples.map((example) => `  ${example}`),
    listViolations(verdict).length === 0
      ? 'nothing is lost'
      : `FOUND: ${listViolations(verdict).join(', ')}`,
    '',
  ].join('\n')
}
