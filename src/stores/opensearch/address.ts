import { RedriveError } from '../../errors.ts'

/** Where the server is and what our indices are called there. */
export interface Address {
  /** With scheme and port, without a user. */
  node: string
  auth?: { username: string; password: string }
  prefix: string
  /** Copies of every index. Without it, one where there is a second node to hold it. */
  replicas?: number
}

const schemes: Record<string, string> = {
  'opensearch:': 'http:',
  'opensearchs:': 'https:',
  'http:': 'http:',
  'https:': 'https:',
}

/** What an index may be called, and a little room for what we append. */
const prefixes = /^[a-z0-9][a-z0-9_.-]{0,199}$/

/** Reads `opensearch://user:password@host:9200/prefix?replicas=1`; `opensearchs:` is the same over TLS. */
export function addressOf(url: string, prefix?: string): Address {
  const parsed = URL.parse(url)
  const scheme = parsed && schemes[parsed.protocol]
  if (!parsed || !scheme || parsed.hostname === '')
    throw invalid('the address of an OpenSearch store looks like opensearch://host:9200/prefix')
  const name = prefix ?? (parsed.pathname.replaceAll('/', '') || 'redrive')
  if (!prefixes.test(name))
    throw invalid(`the prefix must be lower-case letters, digits, - _ or ., not ${quoted(name)}`)
  const auth = parsed.username && {
    username: decodeURIComponent(parsed.username),
    password: decodeURIComponent(parsed.password),
  }
  const replicas = replicasOf(parsed.searchParams)
  return {
    node: `${scheme}//${parsed.hostname}:${parsed.port || (scheme === 'https:' ? '443' : '9200')}`,
    prefix: name,
    ...(auth ? { auth } : {}),
    ...(replicas === undefined ? {} : { replicas }),
  }
}

function replicasOf(query: URLSearchParams): number | undefined {
  for (const key of query.keys())
    if (key !== 'replicas') throw invalid(`unknown setting ${quoted(key)}: there is replicas`)
  const text = query.get('replicas')
  if (text !== null && !/^\d{1,2}$/.test(text))
    throw invalid(`replicas must be a whole number from 0 on, not ${quoted(text)}`)
  return text === null ? undefined : Number(text)
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 80))

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
