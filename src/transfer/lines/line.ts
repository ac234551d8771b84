import { isUtf8 } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { checkSchema, schemaFor } from '../../check/issues.ts'
import { checkKeys, checkObject, keysOf } from '../../check/keys.ts'
import { checkQueueName } from '../../check/queue-name.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter, Payload } from '../../letter/letter.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import type { LetterFilter } from '../../letter/query.ts'
import { letterFromJson, payloadFromJson, payloadToJson } from '../../letter/schema.ts'
import { isTimestamp, type Timestamp } from '../../letter/time.ts'
import type { StoredLetter } from '../../store.ts'

/*
 * The lines of an export, each one JSON object:
 *
 *   {"redrive":"letters","version":1,"createdAt":"…","filter":{…}}
 *   {"crc":"1a2b3c4d","letter":{…},"original":{…},"waitsFor":[…]}
 *   {"letters":1,"sha256":"…"}
 *
 * `crc` is the CRC-32 of the bytes after it; `sha256` is that of all bytes before the last line.
 */

export interface Header {
  redrive: 'letters'
  version: number
  createdAt: Timestamp
  filter: LetterFilter
  /** The export has only letters with a higher id. */
  after?: string
}

export interface Footer {
  letters: number
  sha256: string
}

const formatVersion = 1

export function writeHeader(fields: Omit<Header, 'redrive' | 'version'>): string {
  return `${JSON.stringify({ redrive: 'letters', version: formatVersion, ...fields })}\n`
}

export function writeFooter({ letters, sha256 }: Footer): string {
  return `${JSON.stringify({ letters, sha256 })}\n`
}

export function writeLetter({ letter, original, waitsFor }: StoredLetter): string {
  const json = JSON.stringify({
    letter: { ...letter, payload: writePayload(letter.payload) },
    ...(original ? { original: writePayload(original) } : {}),
    ...(waitsFor ? { waitsFor } : {}),
  })
  const rest = json.slice(1)
  return `${startOf(crc32(rest))}${rest}\n`
}

const startOf = (crc: number): string => `{"crc":"${crc.toString(16).padStart(8, '0')}",`
const startLength = startOf(0).length
const newline = 0x0a

/** Bytes as text if they are UTF-8, so that people and tools can read them; otherwise in base64. */
function writePayload(payload: Payload): object {
  const { bytes, ...rest } = payload
  if (!isUtf8(bytes)) return payloadToJson(payload)
  return { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(), ...rest }
}

const filterSchema = z.custom<LetterFilter>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be an object',
)
const headerSchema = schemaFor<Omit<Header, 'version'>>({
  redrive: z.literal('letters'),
  createdAt: z.string().refine(isTimestamp, 'must be a timestamp such as 2026-01-01T00:00:00.000Z'),
  filter: filterSchema,
  after: z.string().refine(isLetterId, 'must be the id of a letter').optional(),
})
const footerSchema = schemaFor<Footer>({
  letters: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

/** Reads the first line. Rejects one that is not the first line of an export. */
export function readHeader(line: Buffer): Header {
  const value = parseLine(line)
  const { redrive, version, ...rest } = value as Partial<Header>
  if (redrive !== 'letters')
    throw invalid('it must have "redrive": "letters", as the first line that redrive export writes')
  if (version !== formatVersion)
    throw invalid(
      `the format has version ${JSON.stringify(version)}, and this program reads version ${formatVersion}: use the version of redrive that wrote it`,
    )
  checkSchema(headerSchema, { redrive, ...rest }, { thing: 'header key', code: 'INVALID_INPUT' })
  return value as Header
}

/** The last line of an export, or undefined if the line is not one. */
export function readFooter(line: Buffer): Footer | undefined {
  if (!startsWith(line, '{"letters":')) return undefined
  const value = parseLine(line)
  checkSchema(footerSchema, value, { thing: 'footer key', code: 'INVALID_INPUT' })
  return value as Footer
}

const lineKeys = keysOf<StoredLetter & { crc: string }>({
  crc: true,
  letter: true,
  original: true,
  waitsFor: true,
})

/** Reads a line with a letter. The letter is checked completely, since the line may be forged. */
export function readLetter(line: Buffer): StoredLetter {
  const end = line.at(-1) === newline ? line.length - 1 : line.length
  if (!startsWith(line, startOf(crc32(line.subarray(startLength, end)))))
    throw invalid('it is damaged: its checksum is wrong')
  const value = parseLine(line)
  checkKeys('the line', value, lineKeys)
  const { letter: json, original, waitsFor } = value as Partial<Record<keyof StoredLetter, unknown>>
  const letter = readLetterJson(json)
  return {
    letter,
    ...(original === undefined ? {} : { original: readOriginal(original) }),
    ...(waitsFor === undefined ? {} : { waitsFor: readWaitsFor(waitsFor, letter) }),
  }
}

/** The largest number that every store can keep in these fields. */
const maxCount = 2 ** 31 - 1

function readLetterJson(json: unknown): DeadLetter {
  checkObject('letter', json)
  const result = letterFromJson({
    ...json,
    payload: readText((json as Partial<DeadLetter>).payload),
  })
  if (!result.ok) throw invalid(`letter.${result.problem}`)
  const { letter } = result
  if (!isLetterId(letter.id)) throw invalid(`letter.id must be a UUID in lower case`)
  checkQueueName(letter.queue)
  for (const key of ['occurrences', 'replays', 'historyOmitted'] as const)
    if (letter[key] > maxCount)
      throw invalid(`letter.${key} must be at most ${maxCount}, got ${letter[key]}`)
  return letter
}

function readOriginal(json: unknown): Payload {
  const result = payloadFromJson(readText(json))
  if (result.ok) return result.payload
  throw invalid(`original.${result.problem}`)
}

/** Converts `text` to `bytes` in base64, as the schema of a letter expects them. */
function readText(json: unknown): unknown {
  if (typeof json !== 'object' || json === null || !('text' in json) || 'bytes' in json) return json
  const { text, ...rest } = json
  // A lone surrogate has no bytes in UTF-8: the text would come back changed.
  if (typeof text !== 'string' || !text.isWellFormed())
    throw invalid('payload.text must be a string without lone surrogates')
  return { ...rest, bytes: Buffer.from(text).toString('base64') }
}

function readWaitsFor(value: unknown, { dependsOn = [] }: DeadLetter): string[] {
  const isPart = Array.isArray(value) && value.every((id) => dependsOn.includes(id as string))
  if (isPart) return value as string[]
  throw invalid('waitsFor must be a list of ids that are in letter.dependsOn')
}

function parseLine(line: Buffer): object {
  let value: unknown
  try {
    value = JSON.parse(line.toString())
  } catch {
    throw invalid('it is not JSON')
  }
  checkObject('the line', value)
  return value
}

function startsWith(line: Buffer, text: string): boolean {
  return line.subarray(0, text.length).equals(Buffer.from(text))
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
