import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { connect } from '../../src/connect/store.ts'
import { examineConfig, loadConfig, type Config } from '../../src/config/load.ts'
import { formatProblem } from '../../src/config/problems.ts'
import { DeadLetterQueue, loadConfig as publicLoadConfig } from '../../src/index.ts'
import { readOptions } from '../../src/options/options.ts'
import { exponential, fixed, linear } from '../../src/policy/backoff.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { badFiles } from './bad-files.ts'
import { aFolder } from '../folders.ts'

interface Given {
  files?: Record<string, string>
  env?: Record<string, string>
  set?: string[]
  store?: string
  file?: string
}

function sources({ files = {}, env = {}, set = [], store, file }: Given) {
  return {
    ...(file === undefined ? {} : { file }),
    env,
    flags: { set, ...(store === undefined ? {} : { store }) },
    read: (path: string): string => {
      const text = Object.hasOwn(files, path) ? files[path] : undefined
      if (text === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
      return text
    },
  }
}

const load = (given: Given): Config => loadConfig(sources(given))
const loadYaml = (text: string): Config => load({ files: { 'redrive.yaml': text } })

/** Every problem as a line. */
function problemsOf(given: Given): string[] {
  const examined = examineConfig(sources(given))
  return 'problems' in examined ? examined.problems.map(formatProblem) : []
}

describe('loadConfig', () => {
  it('returns the defaults without any source', () => {
    expect(load({})).toMatchObject({
      store: 'sqlite:redrive.db',
      options: {},
    })
    expect(load({}).file).toBeUndefined()
  })

  it('prefers flags to the environment, the environment to the file, and the file to the defaults', () => {
    const files = {
      'redrive.yaml': 'maxRetries: 1\nclaimBatch: 1\npollMs: 1s\nstore: sqlite:file.db',
    }
    const env = { REDRIVE_CLAIM_BATCH: '2', REDRIVE_POLL_MS: '2s', REDRIVE_STORE: 'sqlite:env.db' }
    const config = load({ files, env, set: ['pollMs=3s'], store: 'sqlite:flag.db' })
    expect(config.options).toEqual({ maxRetries: 1, claimBatch: 2, pollMs: 3000 })
    expect(config.store).toBe('sqlite:flag.db')
    expect(readOptions(config.options).leaseMs).toBe(30_000)
  })

  it('reports the origin of each value', () => {
    const config = load({
      files: { 'redrive.yaml': '# none\nmaxRetries: 1\nbreaker:\n  failures: 3\n' },
      env: { REDRIVE_BREAKER__OPEN_MS: '1m' },
      set: ['priority=high'],
    })
    const from = Object.fromEntries(config.settings.map(({ key, from }) => [key, from]))
    expect(from).toMatchObject({
      maxRetries: 'redrive.yaml:2',
      'breaker.failures': 'redrive.yaml:4',
      'breaker.openMs': 'REDRIVE_BREAKER__OPEN_MS',
      priority: '--set priority',
      leaseMs: 'default',
    })
    expect(config.options.breaker).toEqual({ failures: 3, openMs: 60_000 })
  })

  it('reads limits by category and by time from a file and from the environment', () => {
    const config = load({
      files: { 'redrive.yaml': 'maxRetriesByCategory:\n  transient: 5\nretryForMs: 1d\n' },
      env: { REDRIVE_MAX_RETRIES_BY_CATEGORY__RATE_LIMIT: '3' },
    })
    expect(config.options).toEqual({
      maxRetriesByCategory: { transient: 5, 'rate-limit': 3 },
      retryForMs: 86_400_000,
    })
  })

  it('reads the file named by --config or REDRIVE_CONFIG', () => {
    const files = { 'a.yaml': 'maxRetries: 1', 'b.yaml': 'maxRetries: 2', 'redrive.yaml': '{}' }
    expect(load({ files, file: 'a.yaml', env: { REDRIVE_CONFIG: 'b.yaml' } }).file).toBe('a.yaml')
    expect(load({ files, env: { REDRIVE_CONFIG: 'b.yaml' } }).options.maxRetries).toBe(2)
    expect(problemsOf({ files, file: 'c.yaml' })).toEqual(['c.yaml: the file does not exist'])
  })

  it('accepts durations and sizes as strings, and JSON instead of YAML', () => {
    const { options } = loadYaml('{"leaseMs": "30s", "graceMs": 250, "maxPayloadBytes": "1.5MiB"}')
    expect(options).toEqual({ leaseMs: 30_000, graceMs: 250, maxPayloadBytes: 1_572_864 })
  })

  it('accepts a backoff by name or as an object, globally and per queue', () => {
    const { options } = loadYaml(
      'backoff: exponential\nqueues: { mail: { backoff: { kind: fixed, delayMs: 10s } } }',
    )
    expect(options).toEqual({
      backoff: exponential(),
      queues: { mail: { backoff: fixed(10_000) } },
    })
  })

  it('accepts rules and names of templates', () => {
    const { options } = loadYaml(`
rules:
  - name: declined
    when: [{ status: 402 }, { message: Declined, code: E1 }]
    category: permanent
    backoff: linear
    maxRetries: 1
    hint: ask the customer
templates: [llm-overloaded]
`)
    expect(options.templates).toEqual(['llm-overloaded'])
    expect(options.rules).toMatchObject([{ name: 'declined', backoff: linear(), maxRetries: 1 }])
    expect(readOptions(options).rules.map(({ name }) => name)).toEqual([
      'declined',
      'llm-overloaded',
    ])
  })

  it('reports the origin of values in merged maps and replaced lists', () => {
    const files = {
      'redrive.yaml':
        'breaker: { failures: 5, openMs: 1m }\nrules:\n  - { name: a, when: { status: 402 }, category: permanent }',
    }
    const env = { REDRIVE_BREAKER: '{"failures": 7, "probes": 2}' }
    const { settings } = load({ files, env, set: ['breaker={"probes": 3}'] })
    const breakerSettings = settings.filter(({ key }) => key.startsWith('breaker.'))
    expect(breakerSettings.map(({ key, value, from }) => [key, value, from])).toEqual([
      ['breaker.failures', 7, 'REDRIVE_BREAKER'],
      ['breaker.openMs', 60_000, 'redrive.yaml:1'],
      ['breaker.probes', 3, '--set breaker'],
    ])
    const wrong = { REDRIVE_BREAKER: '{"failures": 0}', REDRIVE_RULES: '[{"name": "b"}]' }
    const problems = problemsOf({ files, env: wrong, set: ['a.b=1'] })
    expect(problems).toEqual([
      'breaker.failures (REDRIVE_BREAKER): must be an integer from 1 to 1000, got 0',
      expect.stringMatching(/^rules\.0\.when \(REDRIVE_RULES\): is missing/),
      expect.stringMatching(/^rules\.0\.category \(REDRIVE_RULES\): is missing/),
      expect.stringMatching(/^a \(--set a\.b\): unknown key/),
    ])
  })

  it('reports a key of another kind as not allowed, without a suggestion', () => {
    const files = { 'redrive.yaml': 'backoff: { kind: exponential, baseMs: 1s }' }
    const set = ['backoff={"kind": "fixed", "delayMs": "1s"}']
    expect(problemsOf({ files, set })).toEqual([
      'backoff.baseMs (redrive.yaml:1): is not allowed with kind "fixed"',
    ])
  })

  it('accepts every known store scheme and no other', async () => {
    const known = await connect('nothing:', systemClock).then(
      () => '',
      (error: Error) => error.message,
    )
    const [, list = ''] = /begin with (.+), such as/.exec(known) ?? []
    const schemes = list.split(' or ')
    expect(schemes).toContain('postgresql:')
    for (const scheme of schemes) expect(load({ store: `${scheme}x` }).store).toBe(`${scheme}x`)
    for (const store of ['redrive.db', 'mysql://u:pw@db'])
      expect(problemsOf({ store })).toEqual([
        'store (--store): must begin with sqlite:, postgres:, redis: or opensearch:, such as sqlite:redrive.db',
      ])
  })

  it('rejects an empty file name', () => {
    const text = 'is empty: name a file or remove it'
    expect(problemsOf({ file: '' })).toEqual([`--config: ${text}`])
    expect(problemsOf({ env: { REDRIVE_CONFIG: '' } })).toEqual([`REDRIVE_CONFIG: ${text}`])
  })

  it('merges maps given as JSON in the environment with maps of the file', () => {
    const { options } = load({
      files: { 'redrive.yaml': 'queues: { mail: { maxRetries: 1, priority: low } }' },
      env: { REDRIVE_QUEUES: '{"mail": {"maxRetries": 2}, "sms": {"timeoutMs": "5s"}}' },
    })
    expect(options.queues).toEqual({
      mail: { maxRetries: 2, priority: 'low' },
      sms: { timeoutMs: 5000 },
    })
  })

  it('returns valid queue options for the example file', () => {
    const text = readFileSync(join(import.meta.dirname, '../../examples/redrive.yaml'), 'utf8')
    const env = { PAYMENTS_SECRET: 's3cret', PAYMENTS_AUTHORIZATION: 'Bearer token' }
    const config = load({ files: { 'redrive.yaml': text }, env })
    expect(() => readOptions(config.options)).not.toThrow()
    expect(config.handlers.get('charge-card')).toEqual({
      http: {
        url: 'https://payments.example.com/redrive',
        secret: 's3cret',
        timeoutMs: 10_000,
        headers: { authorization: 'Bearer token' },
      },
    })
    expect(config.handlers.get('resize-image')).toEqual({
      command: { run: ['/usr/local/bin/resize', '--from-stdin'] },
    })
    expect(JSON.stringify(config.settings)).not.toMatch(/s3cret|token/)
  })

  it('reads secrets from files without the trailing newline', () => {
    const config = load({
      files: {
        'redrive.yaml':
          'handlers: { a: { http: { url: "https://a.example", secret: { file: /run/s } } } }',
        '/run/s': 'hidden\n',
        '/run/store': 'postgres://u:pw@db/redrive\r\n',
      },
      env: { REDRIVE_STORE_FILE: '/run/store' },
    })
    expect(config.store).toBe('postgres://u:pw@db/redrive')
    expect(config.handlers.get('a')).toMatchObject({ http: { secret: 'hidden' } })
    expect(JSON.stringify(config.settings)).not.toMatch(/hidden|pw/)
  })

  it('reports requireFix without the version of the application', () => {
    const text = 'queues:\n  orders:\n    requireFix: true\n'
    expect(problemsOf({ files: { 'redrive.yaml': text } })).toEqual([
      'queues.orders.requireFix (redrive.yaml:3): compares versions: set app.version to the version of this application, such as 1.4.0',
    ])
    expect(loadYaml(`${text}app:\n  version: 1.4.0\n`).options).toMatchObject({
      queues: { orders: { requireFix: true } },
      app: { version: '1.4.0' },
    })
    expect(problemsOf({ env: { REDRIVE_REQUIRE_FIX: 'true' } })).toHaveLength(1)
  })

  it('reports all problems at once', () => {
    const problems = problemsOf({
      files: { 'redrive.yaml': 'maxRetries: -1\nbreaker: { failures: 0, share: 2 }\nqueus: {}' },
      env: { REDRIVE_LEASE_MS: 'soon', REDRIVE_NOPE_AT_ALL: '1' },
      set: ['priority=urgent', 'nonsense'],
    })
    expect(problems).toHaveLength(8)
    expect(() => load({ set: ['maxRetries=-1', 'pollMs=0'] })).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringMatching(/^2 problems[^]*maxRetries[^]*pollMs/) as string,
      }) as Error,
    )
  })

  it('rejects keys that could reach a prototype', () => {
    for (const key of ['__proto__', 'constructor', 'prototype']) {
      const inFile = problemsOf({ files: { 'redrive.yaml': `${key}: { admin: true }` } })
      expect(inFile).toEqual([`${key} (redrive.yaml:1): is not allowed as a key`])
      const below = `queues: { ${key}: { maxRetries: 1 } }`
      expect(problemsOf({ files: { 'redrive.yaml': below } })[0]).toContain(`queues.${key}`)
      expect(problemsOf({ set: [`${key}.admin=true`] })[0]).toContain('--set')
      expect(problemsOf({ set: [`queues.${key}.maxRetries=1`] })[0]).toContain('--set')
      expect(problemsOf({ env: { REDRIVE_QUEUES: `{"${key}": {"admin": 1}}` } })).not.toEqual([])
    }
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })
})

describe('a file with one invalid key', () => {
  it.each(badFiles)('is rejected by name: %s', (yaml, key, says) => {
    const problems = problemsOf({ files: { 'redrive.yaml': `# one\n${yaml}` } })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(`${key} (redrive.yaml:2): `)
    expect(problems[0]).toContain(says)
    expect(problems[0]).not.toMatch(/hunter2|pw@/)
  })
})

describe('mailboxes', () => {
  const file = `
mailboxes:
  requests: 'sqlite:mail.db#requests'
  orders: { env: ORDERS_URL }
`
  it('become queue options, with their secrets resolved', () => {
    const config = load({
      files: { 'redrive.yaml': file },
      env: { ORDERS_URL: 'redis://pw@b#orders' },
    })
    expect(config.options.mailboxes).toEqual({
      requests: 'sqlite:mail.db#requests',
      orders: 'redis://pw@b#orders',
    })
    expect(JSON.stringify(config.settings)).not.toContain('pw@b')
  })

  it('are returned without the one whose secret is missing', () => {
    const examined = examineConfig(sources({ files: { 'redrive.yaml': file } }))
    expect(examined).toMatchObject({
      options: { mailboxes: { requests: 'sqlite:mail.db#requests' } },
      problems: [{ key: 'mailboxes.orders' }],
    })
  })
})

describe('notify', () => {
  const text = `
notify:
  hook: { webhook: { url: 'https://hooks.example.org/x', secret: { env: HOOK_SECRET } } }
  team: { slack: { url: { file: slack-url } }, digestMs: 15m, remindMs: 4h, content: true }
  on-call: { pagerduty: { routingKey: { env: PD_KEY } } }
  mail:
    email: { url: { env: SMTP }, from: redrive@example.org, to: [mia@example.org] }
`
  const files = { 'redrive.yaml': text, 'slack-url': 'https://hooks.slack.example/T0/B0/x\n' }

  const secretEnv = {
    HOOK_SECRET: `whsec_${'hush'.repeat(11)}`,
    PD_KEY: 'hush-2',
    SMTP: 'smtps://mia:hush-3@mail.example.org',
  }

  it('is read with its secrets, which do not appear in the settings', () => {
    const config = load({ files, env: secretEnv })
    expect(config.notify).toMatchObject({
      hook: { kind: 'webhook' },
      team: { kind: 'slack', digestMs: 900_000, remindMs: 14_400_000, content: true },
      'on-call': { kind: 'pagerduty' },
      mail: { kind: 'email' },
    })
    expect(config.options).toEqual({})
    expect(JSON.stringify(config.settings)).not.toMatch(/hush|T0\/B0/)
  })

  it('reports every missing secret', () => {
    const problems = problemsOf({ files: { 'redrive.yaml': text } })
    expect(problems.join('\n')).toMatch(/HOOK_SECRET[^]*slack-url[^]*PD_KEY[^]*SMTP/)
  })

  it('returns the store when only secrets are missing', () => {
    const stored = `store: sqlite:a.db\n${text}`
    const examined = (yaml: string) => examineConfig(sources({ files: { 'redrive.yaml': yaml } }))
    expect(examined(stored)).toMatchObject({ store: 'sqlite:a.db' })
    expect(examined(`${stored}\nmaxRetires: 1`)).not.toHaveProperty('store')
  })

  it.each([
    ["{ a: { webhook: { url: 'ftp://x' } } }", /notify\.a\.webhook\.url.*https/],
    ["{ a: { webhook: { url: 'http://x.example' } } }", /notify\.a.*begin with https/],
    ["{ a: { webhook: { url: 'https://10.0.0.1' } } }", /notify\.a.*private/],
    ["{ a: { webhook: { url: 'https://169.254.169.254' } } }", /notify\.a.*never allowed/],
    ['{ a: {} }', /exactly one of webhook, slack, pagerduty and email/],
    ['{ "a b": { webhook: { url: "https://x.example" } } }', /notify\.a b.*not a valid name/],
    ['{ a: { pagerduty: { routingKey: { env: PD_KEY } }, digestMs: 15m } }', /digestMs.*absent/],
    ['{ a: { slack: { url: { env: PD_KEY } } } }', /notify\.a.*url must be a URL/],
  ])('rejects %s', (yaml, message) => {
    const problems = problemsOf({ files: { 'redrive.yaml': `notify: ${yaml}` }, env: secretEnv })
    expect(problems.join('\n')).toMatch(message)
    expect(problems.join('\n')).not.toContain('hush')
  })
})

describe('an embedding application', () => {
  const folder = aFolder('redrive-config')

  it('opens a queue with the result of loadConfig', async () => {
    const file = join(folder, 'app.yaml')
    writeFileSync(file, 'store: "memory:"\nmaxRetries: 7\n')
    const { store, options } = publicLoadConfig({ file, env: { REDRIVE_MAX_ITEMS: '5' } })
    const dlq = await DeadLetterQueue.open(store, options)
    const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' })
    expect(await dlq.enqueue({ type: 'x' }, refused)).toMatchObject({ maxRetries: 7 })
    expect((await dlq.stats()).maxItems).toBe(5)
    await dlq.close()
  })

  it('gets an error with the name of an unknown key', () => {
    expect(() => publicLoadConfig({ path: 'x' } as never)).toThrow(
      'unknown key "path" in loadConfig',
    )
  })

  it('stores nothing while capture is disabled, and every entry point reports it', async () => {
    const { options } = loadYaml('dlq_enabled: false')
    const dlq = await DeadLetterQueue.open('memory:', options)
    const broken = new Error('no')
    const rejected = { code: 'CAPTURE_DISABLED' }
    await expect(dlq.enqueue({ type: 'x' }, broken)).rejects.toMatchObject(rejected)
    await expect(
      dlq.enqueueAll([{ operation: { type: 'x' }, error: broken }]),
    ).rejects.toMatchObject(rejected)
    const fails = async (): Promise<void> => Promise.reject(broken)
    await expect(dlq.guard('x', fails)(1)).rejects.toBe(broken)
    await expect(dlq.guard('y', fails, { rethrow: false })(1)).rejects.toBe(broken)
    await expect(dlq.executor().execute('tool', fails)).rejects.toBe(broken)
    const run = await dlq.workflow({ handler: fails }).run({ id: 'w', task: {} })
    expect(run).toMatchObject({ enqueued: false, why: 'disabled' })
    expect((await dlq.find()).items).toEqual([])
    await dlq.close()
  })

  it('redelivers nothing while the processor is disabled', async () => {
    const { options } = loadYaml('dlq_retry_processor_enabled: false')
    const clock = fakeClock()
    const dlq = await DeadLetterQueue.open('memory:', { ...options, clock })
    dlq.handle('x', () => {})
    await dlq.enqueue({ type: 'x' }, new Error('no'))
    dlq.start()
    await clock.advance(3_600_000)
    expect(await dlq.stats()).toMatchObject({
      states: { pending: 1 },
      processor: { running: false },
    })
    await dlq.close()
  })
})
