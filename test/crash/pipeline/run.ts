import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { lacksPrivate } from '../../servers/private.ts'
import { UsageError } from '../mailbox/run.ts'
import { bugNames } from './plan.ts'
import { faults, found, soak, type SoakSettings, type Verdict } from './soak.ts'

export const usage = `npm run crash -- --pipeline [options]

  --records N            sent through a node, of which 5 % fail (50000)
  --consumers N          processes of its group (4)
  --work-ms N            how long its module takes (20)
  --restarts N           of the broker, which is its own (2)
  --transactional        what came of records and their offsets in one transaction
  --seed N               decides the choices of the killer (1)
  --limit N              seconds without progress after which the run is stuck (120)
  --bug NAME             plants a bug, which must be caught: ${bugNames.join(', ')}
  --bugs                 each of them in turn
  --json FILE            writes the verdict
`

/** The soak of pipelines. Resolves with the code to exit with. */
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
  const isPlanted = values.bugs || values.bug !== undefined
  const settings: SoakSettings = {
    records: count('records', values.records ?? (isPlanted ? '5000' : '50000'), 100),
    poisons: 3,
    consumers: count('consumers', values.consumers, 2),
    workMs: count('work-ms', values['work-ms'], 0),
    restarts: count('restarts', values.restarts, 0),
    seed: count('seed', values.seed, 0),
    limitSeconds: count('limit', values.limit, 1),
    transactional: values.transactional,
    ...(process.stderr.isTTY ? { say: (line) => process.stderr.write(`${line}\n`) } : {}),
  }
  const bug = bugNames.find((name) => name === values.bug)
  if (values.bug !== undefined && !bug)
    throw new UsageError(`no bug ${values.bug}: known are ${bugNames.join(', ')}`)
  const verdicts: Verdict[] = []
  let isWell = true
  for (const planted of values.bugs ? bugNames : [bug]) {
    const verdict = await soak({ ...settings, ...(planted ? { bug: planted } : {}) })
    verdicts.push(verdict)
    const kinds = found(verdict)
    isWell &&= planted ? kinds.length > 0 : kinds.length === 0
    process.stdout.write(
      planted
        ? `${planted.padEnd(22)}${kinds.length > 0 ? 'caught' : 'NOT CAUGHT'}  ${kinds.join(', ')}\n`
        : inWords(verdict),
    )
  }
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify(values.bugs ? verdicts : verdicts[0], null, 2)}\n`)
  return isWell ? 0 : 1
}

function count(name: string, text: string, least: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new UsageError(`--${name} must be a whole number from ${least} on`)
}

function inWords(verdict: Verdict): string {
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
    found(verdict).length === 0 ? 'nothing is lost' : `FOUND: ${found(verdict).join(', ')}`,
    '',
  ].join('\n')
}
