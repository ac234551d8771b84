import { z } from 'zod'
import { hasQuery, pathKeys, type Endpoint } from '../api/endpoint.ts'
import { firstIssue } from '../check/issues.ts'
import { describeType } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'

/** The parts of a request that carry input. */
export interface RequestParts {
  params: { [key: string]: string }
  query: URLSearchParams
  body: unknown
}

/** The input of an endpoint, checked. Rejects the first thing that is wrong with it, by name. */
export function readInput(endpoint: Endpoint, parts: RequestParts): { [key: string]: unknown } {
  const fromPath = pick(parts.params, pathKeys(endpoint.path))
  const rest = hasQuery(endpoint) ? readQuery(endpoint.input, parts.query) : readBody(parts.body)
  for (const key of Object.keys(fromPath))
    if (Object.hasOwn(rest, key))
      throw invalid(`"${key}" is part of the path: remove it from the rest of the request`)
  const given = { ...rest, ...fromPath }
  const result = endpoint.input.safeParse(given)
  if (result.success) return result.data
  const { path, isUnknownKey, text } = firstIssue(result.error, endpoint.input, given)
  const key = path.join('.')
  throw invalid(isUnknownKey ? `unknown field "${key}": ${text}` : `field "${key}" ${text}`)
}

function readBody(body: unknown): { [key: string]: unknown } {
  if (body === undefined || body === null) return {}
  if (typeof body !== 'object' || Array.isArray(body))
    throw invalid(`the body must be a JSON object, got ${describeType(body)}`)
  return body as { [key: string]: unknown }
}

interface Node {
  type?: string
  anyOf?: Node[]
}

/**
 * A query as an object: numbers and booleans by the schema, a list for a key that comes several
 * times, and an object for keys like `metadata.KEY`.
 */
function readQuery(schema: z.ZodObject, query: URLSearchParams): { [key: string]: unknown } {
  const nodes = nodesOf(schema)
  const input = new Map<string, unknown>()
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name)
    const dot = name.indexOf('.')
    const key = dot < 0 ? name : name.slice(0, dot)
    const node = nodes.get(key)
    if (dot > 0 && node?.type === 'object') {
      const entries = { ...(input.get(key) as object), [name.slice(dot + 1)]: scalarOf(values[0]!) }
      input.set(key, entries)
    } else {
      input.set(name, valueOf(node, values))
    }
  }
  return Object.fromEntries(input)
}

const nodesCache = new WeakMap<z.ZodObject, Map<string, Node>>()

function nodesOf(schema: z.ZodObject): Map<string, Node> {
  const cached = nodesCache.get(schema)
  if (cached) return cached
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const nodes = new Map(Object.entries(properties as { [key: string]: Node }))
  nodesCache.set(schema, nodes)
  return nodes
}

/** What cannot be converted stays a string, so that the schema rejects it with its value. */
function valueOf(node: Node | undefined, values: string[]): unknown {
  const forms = node?.anyOf ?? (node ? [node] : [])
  const isList = forms.some(({ type }) => type === 'array')
  if (isList && (values.length > 1 || forms.length === 1)) return values
  if (values.length > 1) return values
  const [text] = values as [string]
  if (forms.some(({ type }) => type === 'number' || type === 'integer'))
    return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
  if (forms.some(({ type }) => type === 'boolean'))
    return text === 'true' ? true : text === 'false' ? false : text
  return text
}

/** A metadata value: JSON if it is a number, a boolean or null, otherwise a string. */
function scalarOf(text: string): unknown {
  return /^(-?\d+(\.\d+)?|true|false|null)$/.test(text) ? (JSON.parse(text) as unknown) : text
}

function pick(from: { [key: string]: string }, keys: string[]): { [key: string]: string } {
  return Object.fromEntries(keys.map((key) => [key, from[key]!]))
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
