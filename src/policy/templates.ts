import type { Rule, RuleMatch } from './classify.ts'
import { exponential, fixed, linear } from './backoff.ts'

const secondMs = 1000
const minuteMs = 60 * secondMs

/** A rule for a common failure pattern: category, backoff, and advice for people. */
export interface Template extends Rule {
  hint: string
}

const codes = (list: string): RuleMatch[] => list.split(' ').map((code) => ({ code }))

/** The built-in templates. A template is active only if the options name it. */
export const templates: readonly Template[] = [
  {
    name: 'github-secondary-rate-limit',
    when: { message: 'secondary rate limit' },
    category: 'rate-limit',
    detail: 'github_rate_limit',
    backoff: exponential({ baseMs: minuteMs, maxMs: 60 * minuteMs, jitter: 0.2 }),
    hint: 'GitHub limits bursts. Run fewer requests at once, and leave a second between requests that write.',
  },
  {
    name: 'llm-overloaded',
    when: [
      { status: 529 },
      ...codes('overloaded_error'),
      { message: /\b(?:model|engine)\b.{0,40}\boverloaded\b/i },
    ],
    category: 'dependency',
    detail: 'llm_server_error',
    backoff: exponential({ baseMs: 30 * secondMs, maxMs: 15 * minuteMs, jitter: 'full' }),
    hint: 'The model is overloaded on the side of its provider. It passes; if it stays, use another model or region.',
  },
  {
    name: 'llm-context-too-long',
    when: [
      ...codes('context_length_exceeded'),
      { message: /maximum context length|prompt is too long|context window/i },
    ],
    category: 'validation',
    recoverability: 'recoverable',
    detail: 'llm_invalid_request',
    hint: 'The prompt is longer than the model accepts. Shorten it, or take a model with a larger context, then retry.',
  },
  {
    name: 'llm-quota',
    when: [
      ...codes('insufficient_quota billing_error'),
      { message: /credit balance is too low|exceeded your current quota/i },
    ],
    category: 'resource',
    severity: 'high',
    recoverability: 'recoverable',
    detail: 'llm_quota_exceeded',
    backoff: linear({ stepMs: 30 * minuteMs, maxMs: 6 * 60 * minuteMs }),
    hint: 'The account has no quota or credit left. Raise the limit or add credit; the letters then succeed by themselves.',
  },
  {
    name: 'expired-credentials',
    when: [
      ...codes('invalid_api_key authentication_error 28P01'),
      { message: /^(?:WRONGPASS|NOAUTH)\b/ },
      ...['TokenExpiredError', 'ExpiredToken', 'ExpiredTokenException'].map((errorName) => ({
        errorName,
      })),
      { status: 401 },
      {
        message:
          /\b(?:token|credentials?|api key)\b.{0,40}\bexpired\b|\bexpired (?:token|api key)/i,
      },
    ],
    category: 'permission',
    severity: 'high',
    recoverability: 'recoverable',
    hint: 'The credentials are expired or wrong. Renew them, restart what holds the old ones, then retry the whole group.',
  },
  {
    name: 'expired-certificate',
    when: [...codes('CERT_HAS_EXPIRED'), { message: /certificate (?:has |is )?expired/i }],
    category: 'permanent',
    severity: 'high',
    recoverability: 'recoverable',
    hint: 'The certificate of the other side has expired. Have it renewed, then retry the whole group.',
  },
  {
    name: 'database-deadlock',
    when: [
      ...codes('40P01 40001 ER_LOCK_DEADLOCK ER_LOCK_WAIT_TIMEOUT P2034'),
      { message: /\bdeadlock(?:ed)?\b/i },
    ],
    category: 'transient',
    backoff: exponential({ baseMs: secondMs, maxMs: minuteMs, jitter: 'full' }),
    hint: 'Two transactions waited for each other. It passes; if it comes often, take locks in the same order everywhere.',
  },
  {
    name: 'disk-full',
    when: [
      ...codes('ENOSPC EDQUOT SQLITE_FULL 53100'),
      { message: /no space left on device|disk (?:is )?full/i },
    ],
    category: 'resource',
    severity: 'critical',
    recoverability: 'recoverable',
    backoff: linear({ stepMs: 10 * minuteMs, maxMs: 60 * minuteMs }),
    hint: 'A disk is full. Make room or enlarge it; nothing that writes there will succeed before.',
  },
  {
    name: 'deploy-in-progress',
    when: [
      ...codes('57P01 57P03 ER_SERVER_SHUTDOWN'),
      {
        message:
          /\bdeploy(?:ment)? (?:is )?in progress\b|\bunder maintenance\b|\bis starting up\b/i,
      },
    ],
    category: 'dependency',
    backoff: fixed(30 * secondMs, 0.2),
    hint: 'A service is being deployed or restarted. Wait until it is back; look at it if this lasts.',
  },
  {
    name: 'dns-failure',
    when: [
      ...codes('ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ESERVFAIL'),
      { message: 'getaddrinfo' },
    ],
    category: 'network',
    detail: 'dns_error',
    backoff: exponential({ baseMs: 30 * secondMs, maxMs: 30 * minuteMs, jitter: 0.2 }),
    hint: 'A host name could not be resolved. Check its spelling in the configuration, then the resolver.',
  },
  {
    name: 'schema-drift',
    when: [
      ...codes('42P01 42703 42P02 42883 ER_NO_SUCH_TABLE ER_BAD_FIELD_ERROR P2021 P2022'),
      { message: /\bno such (?:table|column)\b/i },
    ],
    category: 'permanent',
    severity: 'high',
    recoverability: 'recoverable',
    hint: 'The code and the database differ in their schema. Run the missing migration, then retry the whole group.',
  },
  {
    name: 'duplicate-key',
    when: [
      ...codes(
        '23505 ER_DUP_ENTRY 11000 P2002 SQLITE_CONSTRAINT_UNIQUE SQLITE_CONSTRAINT_PRIMARYKEY',
      ),
      { message: /\bduplicate key\b|\bUNIQUE constraint failed\b/i },
    ],
    category: 'validation',
    severity: 'low',
    hint: 'The row is there already: the work may have been done before. Look, then resolve the letter or edit its key.',
  },
  {
    name: 'database-connections',
    when: [
      ...codes('53300 ER_CON_COUNT_ERROR ER_TOO_MANY_USER_CONNECTIONS P2024'),
      { message: /too many (?:clients|connections)|timeout exceeded when trying to connect/i },
    ],
    category: 'resource',
    backoff: exponential({ baseMs: 10 * secondMs, maxMs: 10 * minuteMs, jitter: 'full' }),
    hint: 'The database has no connection to spare. Make pools smaller, look for leaks, or put a pooler before it.',
  },
]

/**
 * Replaces names by their templates. Throws a TypeError with the known names if a name is unknown.
 */
export function templatesOf(list: readonly (string | Rule)[]): Rule[] {
  return list.map((item) => (typeof item === 'string' ? templateNamed(item) : item))
}

function templateNamed(name: string): Template {
  const template = templates.find((each) => each.name === name)
  if (template) return template
  const all = templates.map((each) => each.name)
  const words = new Set(name.toLowerCase().split(/[^a-z]+/))
  const near = all.filter((each) => each.split('-').some((word) => words.has(word)))
  const known = near.length > 0 ? `did you mean ${near.join(' or ')}?` : `known: ${all.join(', ')}`
  throw new TypeError(`unknown template "${name.slice(0, 80)}", ${known}`)
}
