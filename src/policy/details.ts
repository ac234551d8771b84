import type { ErrorCategory, Failure } from '../letter/letter.ts'
import { statusOf } from './layers.ts'
import { maxText } from './rule.ts'
import type { Work } from './work.ts'

/** Definition of a detail. Without any criterion it applies to all failures of its categories. */
export interface DetailRow {
  /** Categories that the detail can have. */
  under: readonly ErrorCategory[]
  /** Limits the detail to one kind of work. */
  of?: Work
  codes?: string
  names?: string
  statuses?: readonly number[]
  /** Phrases of whole words in the message, separated by commas. */
  phrases?: string
  /** A pattern in the message. */
  says?: RegExp
  /**
   * Pattern that the message must match for a code or name to count: files and sockets share codes.
   */
  codesWith?: RegExp
  namesWith?: RegExp
}

const mayBeAnything: readonly ErrorCategory[] = ['unknown', 'permanent', 'validation']
const spawned = /^spawn(?:Sync)? /
const file =
  /^(?!(?:spawn|spawnSync|connect|listen|bind|accept|read|write|send|kill|getaddrinfo|query\w*) )/

/**
 * Kinds of failure within the categories, by their names in systems of language models and tools.
 * If several match equally well, the first one wins.
 */
export const details = {
  llm_quota_exceeded: {
    under: ['resource', 'permanent'],
    of: 'llm',
    codes: 'insufficient_quota billing_error',
    statuses: [402],
    phrases: 'quota, credit balance, billing',
  },
  llm_rate_limit: { under: ['rate-limit'], of: 'llm' },
  llm_timeout: { under: ['timeout'], of: 'llm' },
  llm_invalid_request: {
    under: ['validation', 'permanent'],
    of: 'llm',
    codes: `invalid_request_error context_length_exceeded content_policy_violation request_too_large
      model_not_found not_found_error`,
    statuses: [400, 404, 405, 409, 410, 413, 415, 422],
  },
  llm_server_error: { under: ['dependency'], of: 'llm' },

  github_rate_limit: { under: ['rate-limit'], of: 'github' },
  github_timeout: { under: ['timeout'], of: 'github' },
  github_not_found: {
    under: ['permanent'],
    of: 'github',
    codes: 'NOT_FOUND',
    statuses: [404, 410],
    phrases: 'not found, could not resolve to',
  },
  github_forbidden: { under: ['permission'], of: 'github' },
  github_server_error: { under: ['dependency'], of: 'github' },
  github_validation: {
    under: ['validation'],
    of: 'github',
    statuses: [400, 422],
    phrases: 'validation failed, unprocessable',
  },

  skill_not_found: {
    under: ['permanent'],
    codes: 'SKILL_NOT_FOUND',
    names: 'SkillNotFoundError',
    says: /\bskill\b[^\n]{0,80}\bnot found\b|\bunknown skill\b/i,
  },
  skill_validation: {
    under: ['validation'],
    codes: 'SKILL_VALIDATION SKILL_INVALID',
    names: 'SkillValidationError',
    says: /\bskill\b/i,
  },
  skill_timeout: {
    under: ['timeout'],
    codes: 'SKILL_TIMEOUT',
    names: 'SkillTimeoutError',
    says: /\bskill\b/i,
  },

  config_missing: {
    under: ['permanent', 'validation', 'permission', 'unknown'],
    codes: 'CONFIG_MISSING MISSING_CONFIG ERR_CONFIG_MISSING',
    names: 'CredentialsProviderError MissingConfigError ConfigMissingError MissingEnvError',
    phrases: `environment variable, environment variables, missing credentials, missing config,
      missing configuration, config missing, configuration missing, region is missing`,
  },
  config_invalid: {
    under: ['permanent', 'validation', 'unknown'],
    codes: 'CONFIG_INVALID INVALID_CONFIG ERR_INVALID_CONFIG',
    names:
      'MongoParseError ConfigError ConfigurationError InvalidConfigError ConfigValidationError',
    phrases: 'invalid config, invalid configuration, config error, configuration error',
  },

  tool_timeout: { under: ['timeout'], of: 'tool' },
  tool_not_found: {
    under: ['permanent'],
    codes: 'ENOENT',
    codesWith: spawned,
    names: 'ToolNotFoundError UnknownToolError',
    phrases: 'tool not found, unknown tool, no such tool, command not found',
    says: /^\S*sh: [^\n]{1,200}: not found$/m,
  },
  tool_permission: { under: ['permission'], of: 'tool' },

  file_not_found: {
    under: ['permanent'],
    codes: 'ENOENT',
    codesWith: file,
    names: 'FileNotFoundException NoSuchFileException',
    phrases: 'no such file',
  },
  file_permission: { under: ['permission'], codes: 'EACCES EPERM EROFS', codesWith: file },
  file_system: {
    under: ['permanent', 'resource', 'validation', 'transient'],
    codes: `EISDIR ENOTDIR EEXIST ENOTEMPTY EXDEV ELOOP EBADF ENAMETOOLONG EFBIG EBUSY ETXTBSY ESTALE
      ENOSPC EDQUOT EIO`,
    codesWith: file,
    phrases: 'no space left, disk full, disk is full, disk quota',
  },

  dns_error: {
    under: ['network', 'timeout'],
    codes: `ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ENODATA ESERVFAIL EREFUSED ETIMEOUT`,
    names: 'UnknownHostException UnresolvedAddressException',
    phrases: 'getaddrinfo, dns, name resolution, name or service not known, host not found',
  },
  connection_error: {
    under: ['network'],
    codes: `ECONNREFUSED ECONNRESET ECONNABORTED ECONNCLOSED EPIPE ENOTCONN ESHUTDOWN UND_ERR_SOCKET
      UND_ERR_CLOSED UND_ERR_DESTROYED ERR_SOCKET_CLOSED ERR_STREAM_PREMATURE_CLOSE PROTOCOL_CONNECTION_LOST
      NR_CLOSED CONNECTION_CLOSED CONNECTION_ENDED CONNECTION_DESTROYED 08000 08001 08003 08004 08006 08007
      08P01 P1001 P1017`,
    names: `ConnectException NoRouteToHostException SocketException ClosedChannelException
      HttpHostConnectException NoHttpResponseException CommunicationsException`,
    phrases: `connection, connect, connected, disconnected, socket, client is closed, client was closed,
      broken pipe, other side closed, premature close, max retries per request`,
  },
  network_error: { under: ['network'] },

  dependency_error: {
    under: ['permanent'],
    codes: 'MODULE_NOT_FOUND ERR_MODULE_NOT_FOUND ERR_PACKAGE_PATH_NOT_EXPORTED',
    names: 'ClassNotFoundException NoClassDefFoundError NoSuchMethodError NoSuchFieldError',
    phrases: 'cannot find module, cannot find package',
  },
  type_error: { under: mayBeAnything, names: 'TSError', says: /\berror TS\d{4,5}\b/ },
  lint_error: {
    under: mayBeAnything,
    names: 'LintError LintingError',
    phrases: `eslint, oxlint, lint error, lint errors, lint failed, linting failed, lint problems`,
  },
  test_failure: {
    under: mayBeAnything,
    names: 'TestFailure TestError TestFailedError',
    phrases: 'test failed, tests failed, failed tests, failing tests, test suite failed',
    says: /^ *FAIL\b.{1,200}\.(?:test|spec)\./m,
  },
  build_failed: {
    under: mayBeAnything,
    names: 'BuildError BuildFailedError BuildFailure CompileError',
    phrases: 'build failed, build error, compilation failed, failed to compile',
  },
  verification_failed: { under: mayBeAnything, of: 'verification' },
  system_error: {
    under: ['resource', 'permanent'],
    codes: `ENOMEM EMFILE ENFILE ENOBUFS ERR_WORKER_OUT_OF_MEMORY ERR_ASSERTION ERR_INVALID_ARG_TYPE
      ERR_INVALID_ARG_VALUE ERR_INVALID_STATE ERR_OUT_OF_RANGE ERR_MISSING_ARGS`,
    names: `TypeError ReferenceError RangeError EvalError URIError AssertionError DataCloneError
      OutOfMemoryError StackOverflowError NullPointerException ClassCastException IndexOutOfBoundsException
      ArrayIndexOutOfBoundsException StringIndexOutOfBoundsException ArithmeticException
      NoSuchElementException`,
    // fetch throws a TypeError for all network errors.
    namesWith: /^(?!fetch failed$|Failed to fetch$|terminated$)/,
    phrases: 'out of memory, cannot allocate memory, too many open files',
  },
  tool_execution: {
    under: ['unknown', 'permanent', 'validation', 'dependency', 'transient', 'resource'],
    of: 'tool',
  },
} satisfies Record<string, DetailRow>

export type Detail = keyof typeof details

interface Known {
  detail: Detail
  row: DetailRow
  codes: ReadonlySet<string>
  names: ReadonlySet<string>
  /** Finds one of the phrases in a message. */
  phrases: RegExp | undefined
  hasCriterion: boolean
}

/** One of the phrases as whole words, with anything but letters and digits between them. */
function phrasePattern(phrases: string): RegExp | undefined {
  if (phrases === '') return undefined
  const forms = phrases.split(',').map((phrase) => phrase.trim().replaceAll(/\s+/g, '[^a-z0-9]+'))
  return new RegExp(`(?<![a-z0-9])(?:${forms.join('|')})(?![a-z0-9])`, 'i')
}

const byCategory = new Map<ErrorCategory, Known[]>()

for (const [detail, row] of Object.entries(details) as [Detail, DetailRow][]) {
  const { codes = '', names = '', statuses, phrases = '', says } = row
  const known = {
    detail,
    row,
    codes: new Set(codes.match(/\S+/g)),
    names: new Set(names.match(/\S+/g)),
    phrases: phrasePattern(phrases),
    hasCriterion: codes + names + phrases !== '' || statuses !== undefined || says !== undefined,
  }
  for (const category of row.under)
    byCategory.set(category, [...(byCategory.get(category) ?? []), known])
}

/**
 * The detail of a failure: by code, name and status of the failure and its causes, nearest first;
 * then by the words of their messages; then by the kind of work alone. Undefined without a match.
 */
export function detailOf(
  layers: readonly Failure[],
  category: ErrorCategory,
  work?: Work,
): Detail | undefined {
  const rows = byCategory.get(category)?.filter(({ row }) => !row.of || row.of === work) ?? []
  const known =
    find(rows, layers, byCode) ??
    find(rows, layers, byName) ??
    find(rows, layers, byStatus) ??
    byWords(rows, layers) ??
    rows.find(({ row, hasCriterion }) => !hasCriterion && row.of) ??
    rows.find(({ hasCriterion }) => !hasCriterion)
  return known?.detail
}

function find(
  rows: readonly Known[],
  layers: readonly Failure[],
  fits: (known: Known, failure: Failure) => boolean,
): Known | undefined {
  for (const layer of layers) {
    const known = rows.find((row) => fits(row, layer))
    if (known) return known
  }
  return undefined
}

function byCode({ codes, row }: Known, { code, message }: Failure): boolean {
  return code !== undefined && codes.has(code) && (row.codesWith?.test(message) ?? true)
}

function byName({ names, row }: Known, { name, message }: Failure): boolean {
  return names.has(name) && (row.namesWith?.test(message) ?? true)
}

function byStatus({ row }: Known, failure: Failure): boolean {
  const status = statusOf(failure)
  return status !== undefined && row.statuses?.includes(status) === true
}

function byWords(rows: readonly Known[], layers: readonly Failure[]): Known | undefined {
  for (const { message } of layers) {
    const text = message.slice(0, maxText)
    const known = rows.find(({ row, phrases }) => row.says?.test(text) || phrases?.test(text))
    if (known) return known
  }
  return undefined
}
