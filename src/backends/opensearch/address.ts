import { RedriveError } from '../../errors.ts'
import { urlSettings } from '../url.ts'

/** The server, and the names of the indices. */
export interface Address {
  /** The URL of the server: scheme, host and port, without a user. */
  node: string
  auth?: { username: string; password: string }
  prefix: string
  /** Copies of every index. Default: one if there is a second node to hold it. */
  replicas?: number
  /** The alias for queries by people. Undefined: none. */
  alias?: string
}

/** The name of the index in the workflow design, so that its queries work unchanged. */
const defaultAlias = 'mahavishnu_dlq'

/** Settings of the URL that an option can replace. */
export interface AddressOptions {
  prefix?: string | undefined
  replicas?: number | undefined
  alias?: string | false | undefined
}

const schemes: Record<string, string> = {
  'opensearch:': 'http:',
  'opensearchs:': 'https:',
  'http:': 'http:',
  'https:': 'https:',
}

/** Valid names of indices, short enough for a suffix. */
const namePattern = /^[a-z0-9][a-z0-9_.-]{0,199}$/

/**
 * Parses `opensearch://user:password@host:9200/prefix?replicas=1&alias=name`; `opensearchs:` is the
 * same over TLS. Options take precedence.
 */
export function addressOf(url: string, options: AddressOptions = {}): Address {
  const parsed = URL.parse(url)
  const scheme = parsed && schemes[parsed.protocol]
  if (!parsed || !scheme || parsed.hostname === '')
    throw invalid('the URL of an OpenSearch store must be like opensearch://host:9200/prefix')
  const prefix = options.prefix ?? (parsed.pathname.replaceAll('/', '') || 'redrive')
  if (!namePattern.test(prefix))
    throw invalid(
      `prefix must consist of lower-case letters, digits, - _ or ., not ${quoted(prefix)}`,
    )
  const auth = parsed.username && {
    username: decodeURIComponent(parsed.username),
    password: decodeURIComponent(parsed.password),
  }
  const settings = settingsOf(parsed.searchParams)
  const replicas = options.replicas ?? settings.replicas
  const alias = options.alias ?? settings.alias ?? defaultAlias
  if (alias !== false && !namePattern.test(alias))
    throw invalid(
      `alias must consist of lower-case letters, digits, - _ or ., not ${quoted(alias)}`,
    )
  return {
    node: `${scheme}//${parsed.hostname}:${parsed.port || (scheme === 'https:' ? '443' : '9200')}`,
    prefix,
    ...(auth ? { auth } : {}),
    ...(replicas === undefined ? {} : { replicas }),
    ...(alias === false ? {} : { alias }),
  }
}

function settingsOf(query: URLSearchParams): Pick<AddressOptions, 'replicas' | 'alias'> {
  const { replicas, alias } = urlSettings('OpenSearch URL', query, ['replicas', 'alias'])
  if (replicas !== undefined && !/^\d{1,2}$/.test(replicas))
    throw invalid(`replicas must be a whole number of at least 0, not ${quoted(replicas)}`)
  return {
    ...(replicas === undefined ? {} : { replicas: Number(replicas) }),
    ...(alias === undefined ? {} : { alias: alias === 'off' ? false : alias }),
  }
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 80))

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
