import { header } from '../letter/failure.ts'
import { read } from '../letter/reading.ts'
import { ancestorsOf } from './ancestors.ts'

/**
 * Kind of the failed work, if known. Distinguishes, for example, timeouts of GitHub and of LLMs.
 */
export type Work = 'llm' | 'github' | 'tool' | 'verification'

/** Kinds by the full name of the queue or operation type. */
const queues: ReadonlyMap<string, Work> = new Map([
  ['llm', 'llm'],
  ['llm_call', 'llm'],
  ['github', 'github'],
  ['github_api', 'github'],
  ['tool', 'tool'],
  ['tool_execution', 'tool'],
  ['verification', 'verification'],
])

/** Kinds by the error class of a client that does only one kind of work. */
const classes: ReadonlyMap<string, Work> = new Map([
  ['OpenAIError', 'llm'],
  ['AnthropicError', 'llm'],
  ['GraphqlResponseError', 'github'],
])

const hosts: ReadonlyMap<string, Work> = new Map([
  ['api.openai.com', 'llm'],
  ['api.anthropic.com', 'llm'],
  ['generativelanguage.googleapis.com', 'llm'],
  ['api.mistral.ai', 'llm'],
  ['api.groq.com', 'llm'],
  ['api.deepseek.com', 'llm'],
  ['api.cohere.com', 'llm'],
  ['openrouter.ai', 'llm'],
  ['api.github.com', 'github'],
  ['uploads.github.com', 'github'],
])

const maxCauses = 4

/**
 * The kind of work: by the name of the queue, else by the class of the error or the host of its
 * request, in the error or one of its causes. Undefined if unknown. Never throws.
 */
export function workOf(queue: string, thrown?: unknown): Work | undefined {
  const named = queues.get(queue)
  if (named) return named
  let error = thrown
  for (let depth = 0; depth < maxCauses && typeof error === 'object' && error !== null; depth++) {
    const found = ofError(error)
    if (found) return found
    error = read(error, 'cause')
  }
  return undefined
}

function ofError(error: object): Work | undefined {
  for (const name of ancestorsOf(error)) {
    const known = classes.get(name)
    if (known) return known
  }
  const request = read(error, 'request')
  const agent = header(read(request, 'headers'), 'user-agent')
  if (typeof agent === 'string' && agent.startsWith('octokit')) return 'github'
  const places = [request, read(error, 'response'), read(error, 'config'), read(error, 'options')]
  for (const place of places) {
    const known = hostOf(read(place, 'url')) ?? hostOf(read(place, 'baseURL'))
    if (known) return known
  }
  return undefined
}

function hostOf(url: unknown): Work | undefined {
  const text = typeof url === 'string' ? url : read(url, 'href')
  if (typeof text !== 'string') return undefined
  const host = /^https?:\/\/([\w.-]+)/.exec(text.slice(0, 300))?.[1]
  return host === undefined ? undefined : hosts.get(host.toLowerCase())
}
