import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aFolder, expectEscaped, hostileText, redrive, type Ran } from '../run-cli.ts'

/*
 * What each command prints into a pipe, on the same store and at the same time. The files are in
 * golden/; after a wanted change, npx vitest run test/cli/output -u writes them again.
 */

const folder = aFolder()
const template = join(folder, 'template.db')
const ids = {
  pending: '01995c3a-1000-7000-8000-000000000001',
  parked: '01995c3a-2000-7000-8000-000000000002',
  exhausted: '01995c3a-3000-7000-8000-000000000003',
  resolved: '01995c3a-4000-7000-8000-000000000004',
  archived: '01995c3a-5000-7000-8000-000000000005',
}
const failure = { name: 'HttpError', message: 'gateway timeout', causes: [], at: timeOf(0) }
const group = 'v1-a77e7f3bef6b9a28'

function timeOf(minutes: number): string {
  return new Date(Date.UTC(2026, 0, 1, 0, minutes)).toISOString()
}

const env = { REDRIVE_TOKEN: 'rdr_unused' }

beforeAll(async () => {
  const store = sqliteStore({ path: template })
  const clock = fakeClock(Date.UTC(2026, 0, 1, 1))
  const dlq = await DeadLetterQueue.open(store, { clock, redeliver: false })
  await store.add([
    aLetter({ id: ids.pending, queue: 'charge-card', failure, fingerprint: group, tags: ['vip'] }),
    aLetter({ id: ids.parked, queue: '顧客を同期する', state: 'parked', fingerprint: 'v1-parked' }),
    aLetter({
      id: ids.exhausted,
      queue: 'charge-card',
      state: 'exhausted',
      failure: { ...failure, message: `bad ${hostileText}` },
      fingerprint: group,
      metadata: { customer: 'acme' },
    }),
    aLetter({ id: ids.resolved, queue: 'refund', state: 'resolved' }),
    aLetter({ id: ids.archived, queue: 'refund', state: 'archived' }),
  ])
  await dlq.pauseQueue('refund', 'mia', 'the gateway is down')
  await dlq.note(ids.pending, 'called the gateway', 'mia')
  await dlq.close()
  writeFileSync(join(folder, 'payload.json'), '{"order":2}')
  writeFileSync(join(folder, 'patch.json'), '[{"op":"replace","path":"/order","value":3}]')
})

/** Names of the files, and the arguments of the commands. */
const cases: { [name: string]: string[] } = {
  list: ['list'],
  'list-filter': ['list', '--state', 'parked,exhausted'],
  'list-jsonl': ['list', '--queue', 'refund', '--jsonl'],
  show: ['show', ids.pending],
  'show-json': ['show', ids.pending, '--json'],
  'show-missing': ['show', 'nothing'],
  'show-missing-json': ['show', 'nothing', '--json'],
  tail: ['tail', '--lines', 'x'],
  search: ['search', 'timeout'],
  diff: ['diff', ids.pending],
  lineage: ['lineage', ids.pending],
  views: ['views', 'list'],
  'views-save': ['views', 'save', 'parked', '--state', 'parked', '--shared'],
  retry: ['retry', ids.exhausted, '--by', 'mia'],
  'retry-filter': ['retry', '--queue', 'charge-card', '--yes', '--by', 'mia'],
  'retry-no-answer': ['retry', '--queue', 'charge-card'],
  replay: ['replay', ids.parked, '--by', 'mia'],
  resolve: ['resolve', ids.parked, '--by', 'mia'],
  fail: ['fail', ids.pending, '--message', 'declined', '--code', 'card', '--by', 'mia'],
  review: ['review', ids.parked, '--decision', 'discard', '--by', 'mia'],
  edit: ['edit', ids.pending, '--file', 'payload.json', '--reason', 'fix', '--yes', '--by', 'mia'],
  undo: ['undo', ids.pending, '--by', 'mia'],
  note: ['note', ids.pending, 'seen', '--by', 'mia'],
  park: ['park', ids.pending, '--by', 'mia'],
  archive: ['archive', '--state', 'resolved', '--yes', '--json', '--by', 'mia'],
  restore: ['restore', ids.archived, '--by', 'mia'],
  remove: ['remove', ids.archived, ids.parked, '--json', '--by', 'mia'],
  bulk: ['bulk', 'plan', 'retry', '--queue', 'charge-card', '--by', 'mia'],
  'bulk-edit': ['bulk', 'plan', 'edit', '--all', '--patch', 'patch.json', '--reason', 'fix'],
  'bulk-list': ['bulk', 'list'],
  'bulk-missing': ['bulk', 'show', '0199'],
  capture: ['capture', 'charge-card', '--file', 'payload.json', '--message', 'timeout'],
  groups: ['groups'],
  group: ['group', 'show', group],
  'group-resolve': ['group', 'resolve', group, '--in-version', '2.0.0', '--by', 'mia'],
  'group-explain': ['group', 'explain', ids.pending],
  queue: ['queue', 'list'],
  'queue-paused': ['queue', 'paused'],
  'queue-resume': ['queue', 'resume', 'refund', '--by', 'mia'],
  stats: ['stats'],
  'stats-json': ['stats', '--json'],
  backtest: ['backtest', '--max-retries', '5'],
  alerts: ['alerts', 'list'],
  workers: ['workers'],
  'doctor-text': ['doctor'],
  doctor: ['doctor', '--quick', '--jsonl'],
  import: ['import', 'missing.jsonl'],
  export: ['export', 'letters.jsonl'],
  copy: ['copy', 'sqlite:missing.db', 'sqlite:new.db'],
  pipeline: ['pipeline', 'status', '--config', 'missing.yaml'],
  audit: ['audit', 'list'],
  tokens: ['tokens', 'list'],
  keys: ['keys', 'status'],
  erase: ['erase', 'user-17', '--by', 'mia', '--reason', 'request 4711'],
  'serve-on-server': ['serve', '--server', 'http://127.0.0.1:7400'],
  'work-on-server': ['work', '--server', 'http://127.0.0.1:7400'],
  'server-and-store': ['list', '--server', 'http://127.0.0.1:7400'],
  config: ['config', 'check', 'missing.yaml'],
  'command-missing-json': ['bulk', '--json'],
  'replay-to': ['replay', ids.parked, '--to', 'nowhere', '--by', 'mia'],
  api: ['api', 'getSeries', 'metric=depth'],
  'demo-on-server': ['demo', '--server', 'http://127.0.0.1:7400'],
  help: ['help', 'queue'],
  completion: ['completion', 'tcsh'],
}

/** Commands that must not get the store of the test. */
const withoutStore = new Set(['serve-on-server', 'work-on-server', 'demo-on-server'])

/** Replaces what differs in every run: new ids, by one of the same length, paths and versions. */
function normalize(text: string, path: string): string {
  const known = new Set(Object.values(ids))
  return text
    .replaceAll(path, 'STORE')
    .replaceAll(folder, 'FOLDER')
    .replaceAll(/"sqlite","text":"[\d.]+"/g, '"sqlite","text":"VERSION"')
    .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, (id) =>
      known.has(id) ? id : 'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx',
    )
    .replaceAll(/^(ok {3}sqlite: )[\d.]+$/gm, '$1VERSION')
}

function format({ out, err, exit }: Ran): string {
  return `exit ${exit}\n--- stdout\n${out}--- stderr\n${err}`
}

describe('each command', () => {
  it.each(Object.entries(cases))('prints %s', async (name, args) => {
    // The commands run on 2026-01-01 at 02:00, whenever the test runs.
    vi.spyOn(Date, 'now').mockReturnValue(Date.UTC(2026, 0, 1, 2))
    onTestFinished(() => void vi.restoreAllMocks())
    const path = join(folder, `${name}.db`)
    copyFileSync(template, path)
    const store = withoutStore.has(name) ? [] : ['--store', `sqlite:${path}`]
    const ran = await redrive([...args, ...store], { env, cwd: folder })
    expectEscaped(ran.out + ran.err)
    const text = normalize(format(ran), path)
    await expect(text).toMatchFileSnapshot(`golden/${name}.txt`)
  })

  it('has a file in golden/', async () => {
    const { out } = await redrive(['--help'])
    const names = [...out.matchAll(/^ {2}([a-z]+)(?= )/gm)].map(([, name]) => name!)
    const commands = names.filter((name) => name !== 'redrive')
    const covered = new Set(Object.values(cases).map(([command]) => command))
    expect(commands.filter((name) => !covered.has(name))).toEqual([])
    expect(commands.length).toBeGreaterThan(30)
  })
})
