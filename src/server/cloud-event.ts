import type { IncomingHttpHeaders } from 'node:http'
import { eventType } from '../api/endpoint.ts'
import { describeValue, quote } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { kindOf } from '../letter/payload.ts'

type Fields = { [key: string]: unknown }

/** Attributes that become fields of the failure. All attributes become metadata as well. */
const fields = new Set(['queue', 'tenant', 'lane', 'priority', 'traceparent', 'dedupekey'])
const errorFields = { errorname: 'name', errormessage: 'message', errorcode: 'code' }
const attributeName = /^[a-z0-9]+$/

/** Whether a request is a CloudEvent: in its body (structured mode) or its headers (binary). */
export function isCloudEvent(headers: IncomingHttpHeaders): boolean {
  return isStructured(headers) || headers['ce-specversion'] !== undefined
}

function isStructured(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.split(';', 1)[0]!.trim().toLowerCase() === eventType
}

/** The input of a capture from a CloudEvent. Rejects an event that breaks the specification 1.0. */
export function readCloudEvent(headers: IncomingHttpHeaders, body: Buffer): Fields {
  const event = isStructured(headers) ? readStructured(body) : readBinary(headers, body)
  const { attributes, payload } = event
  if (attributes['specversion'] !== '1.0')
    throw invalid(
      `specversion of the CloudEvent must be "1.0", got ${describeValue(attributes['specversion'])}`,
    )
  for (const name of ['id', 'source', 'type'])
    if (typeof attributes[name] !== 'string' || attributes[name] === '')
      throw invalid(`the CloudEvent has no ${name}: set it to a string that is not empty`)
  return { ...captureOf(attributes), ...payload }
}

/** An event is identified by its source and its id. A source is a URI, which has no spaces. */
function captureOf(attributes: Fields): Fields {
  const { specversion: _, datacontenttype: __, ...metadata } = attributes
  const { id, source, type, time } = metadata as { [key: string]: string | undefined }
  const given = Object.entries(metadata).filter(([name]) => fields.has(name))
  const { dedupekey = `${source} ${id}`, ...own } = Object.fromEntries(given)
  return {
    queue: type,
    dedupeKey: dedupekey,
    ...own,
    ...(time === undefined ? {} : { failedAt: toUtc(time) }),
    ...numberOf(metadata, 'attempts', 'attempts'),
    error: errorOf(metadata, `an event of the type ${type} from ${source} was reported as failed`),
    metadata,
  }
}

function errorOf(metadata: Fields, message: string): Fields {
  const given = Object.entries(errorFields).filter(([name]) => metadata[name] !== undefined)
  return {
    name: 'CloudEvent',
    message,
    ...Object.fromEntries(given.map(([name, field]) => [field, metadata[name]])),
    ...numberOf(metadata, 'errorstatus', 'status'),
  }
}

/** Headers have only strings. */
function numberOf(metadata: Fields, attribute: string, field: string): Fields {
  const value = metadata[attribute]
  if (value === undefined) return {}
  return { [field]: typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value }
}

/** RFC 3339 allows other time zones than UTC. What is no time stays, and is rejected later. */
function toUtc(time: string): unknown {
  const ms = typeof time === 'string' ? Date.parse(time) : Number.NaN
  return Number.isNaN(ms) ? time : new Date(ms).toISOString()
}

interface Event {
  attributes: Fields
  /** `json`, `text` or `base64`, and `contentType`. */
  payload: Fields
}

function readStructured(body: Buffer): Event {
  const event = parseObject(body)
  const { data, data_base64: base64, ...attributes } = event
  for (const [name, value] of Object.entries(attributes)) {
    checkName(name)
    if (value === null) delete attributes[name]
    else if (!['string', 'number', 'boolean'].includes(typeof value))
      throw invalid(
        `attribute ${quote(name)} of the CloudEvent must be a string, a number or a boolean, got ${describeValue(value)}`,
      )
  }
  if (data !== undefined && base64 !== undefined)
    throw invalid('the CloudEvent has data and data_base64: remove one of them')
  const contentType = attributes['datacontenttype']
  const typed = contentType === undefined ? {} : { contentType }
  if (base64 !== undefined) return { attributes, payload: { base64, ...typed } }
  if (data === undefined) return { attributes, payload: { json: null } }
  const isText =
    typeof data === 'string' && typeof contentType === 'string' && kindOf(contentType) !== 'json'
  return { attributes, payload: isText ? { text: data, ...typed } : { json: data, ...typed } }
}

function readBinary(headers: IncomingHttpHeaders, body: Buffer): Event {
  const attributes: Fields = {}
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith('ce-')) continue
    const name = header.slice(3)
    checkName(name)
    attributes[name] = decodeHeader(name, String(value))
  }
  const contentType = headers['content-type']
  if (contentType !== undefined) attributes['datacontenttype'] = contentType
  const payload = {
    base64: body.toString('base64'),
    ...(contentType === undefined ? {} : { contentType }),
  }
  return { attributes, payload }
}

function checkName(name: string): void {
  if (!attributeName.test(name))
    throw invalid(
      `attribute ${quote(name)} of the CloudEvent must have only lower-case letters and digits`,
    )
}

/** Quotes are removed first, then the value is percent-decoded once. */
function decodeHeader(name: string, value: string): string {
  const quoted = /^"(.*)"$/s.exec(value)
  const plain = quoted ? quoted[1]!.replaceAll(/\\(.)/gs, '$1') : value
  try {
    return decodeURIComponent(plain.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'))
  } catch {
    throw invalid(`header ce-${name} is not percent-encoded UTF-8`)
  }
}

function parseObject(body: Buffer): Fields {
  let event: unknown
  try {
    event = JSON.parse(body.toString())
  } catch {
    throw invalid('the CloudEvent is not valid JSON')
  }
  if (typeof event === 'object' && event !== null && !Array.isArray(event)) return event as Fields
  throw invalid(`the CloudEvent must be a JSON object, got ${describeValue(event)}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
