import type { Failure } from '../letter/letter.ts'
import { memoize } from '../letter/memoize.ts'
import { applyRules, type FingerprintRule } from './fingerprint-rules.ts'
import { hash64 } from './hash.ts'
import { layersOf } from './layers.ts'

/** Identifies the cause of a failure. */
export interface Fingerprint {
  value: string
  version: 1
  /** The parts that were used: rule, or queue, name, code, cause-code, status, frames, message. */
  used: string[]
}

/** Why a failure has its fingerprint. */
export interface FingerprintReasons {
  /** The fingerprint of the failure. */
  value: string
  /** What the fingerprint is made of: the hash of these parts, or the result of a rule. */
  parts: { part: string; value: string }[]
  /** The frames of the stack that were read, and whether they count. */
  frames: { frame: string; used: boolean }[]
  /** The variable parts of the message that were replaced by "#", if the message counts. */
  masked: string[]
}

/** Gets what the computation of a fingerprint considers, as it goes. */
type Trace = Omit<FingerprintReasons, 'value'>

const maxMessage = 1024
const maxStack = 4096
const maxFrames = 3
/** Characters of a normalised message that count. */
const maxWords = 256
/** Size of the caches: the same few frames and messages occur many times. */
const maxKnown = 1000

/**
 * One fingerprint per cause: a hash of the queue, the error's name, code and status, and the top
 * stack frames in user code, without line numbers. Without such frames, the message is used,
 * without its variable parts (ids, numbers, quoted values, addresses, paths). Reads a bounded
 * number of characters. The first rule that matches takes precedence.
 */
export function fingerprint(
  queue: string,
  failure: Failure,
  rules: readonly FingerprintRule[] = [],
): Fingerprint {
  return compute(queue, failure, rules)
}

/** How `fingerprint` gets its result for the same arguments. */
export function explainFingerprint(
  queue: string,
  failure: Failure,
  rules: readonly FingerprintRule[] = [],
): FingerprintReasons {
  const trace: Trace = { parts: [], frames: [], masked: [] }
  const { value } = compute(queue, failure, rules, trace)
  return { value, ...trace }
}

function compute(
  queue: string,
  failure: Failure,
  rules: readonly FingerprintRule[],
  trace?: Trace,
): Fingerprint {
  const used: string[] = []
  let text = ''
  const add = (part: string, value: string): void => {
    used.push(part)
    text += `${part} ${value.length} ${value}`
    trace?.parts.push({ part, value })
  }
  const given = rules.length > 0 ? applyRules(rules, queue, failure) : undefined
  if (given !== undefined) {
    add('rule', given)
    return { value: given, version: 1, used }
  }
  add('queue', queue)
  add('name', failure.name.slice(0, 200))
  if (failure.code !== undefined) add('code', failure.code.slice(0, 200))
  else {
    const cause = layersOf(failure).find((layer) => layer.code !== undefined)
    if (cause?.code !== undefined) add('cause-code', cause.code.slice(0, 200))
  }
  if (failure.status !== undefined) add('status', String(failure.status))
  const frames = failure.stack === undefined ? '' : framesOf(failure.stack, failure, trace?.frames)
  if (frames) add('frames', frames)
  else add('message', wordsOf(failure.message, trace?.masked))
  return { value: `v1-${hashOf(text)}`, version: 1, used }
}

const hashOf = memoize(maxKnown, hash64)

const frameStart = '\n    at '

/** Function and file of the top frames in user code, one per line. Empty if there are none. */
function framesOf(
  whole: string,
  { name, message }: Failure,
  traced?: FingerprintReasons['frames'],
): string {
  const head = name.length + 2
  // The message precedes the frames, may be long, and may contain text that looks like a frame.
  const from = whole.startsWith(message, head) ? head + message.length : 0
  const stack = whole.slice(from, from + maxStack)
  let frames = ''
  let last = ''
  let start = stack.indexOf(frameStart)
  for (let count = 0; start >= 0 && count < maxFrames;) {
    const line = start + frameStart.length
    const newline = stack.indexOf('\n', line)
    const written = stack.slice(line, newline < 0 ? stack.length : newline)
    const frame = frameIn(written)
    // Recursion counts as one frame.
    const isUsed = frame !== '' && frame !== last
    traced?.push({ frame: written, used: isUsed })
    if (isUsed) {
      frames += `${frame}\n`
      last = frame
      count++
    }
    start = newline < 0 ? -1 : stack.indexOf(frameStart, newline)
  }
  return frames
}

/**
 * "async charge (file:///app/src/pay.ts:12:34)" becomes "charge pay.ts". Empty for foreign code.
 */
const frameIn = memoize(maxKnown, (line: string) => {
  const open = line.endsWith(')') ? line.indexOf(' (') : -1
  const place = open < 0 ? line : line.slice(open + 2, -1)
  const column = place.lastIndexOf(':')
  const position = place.lastIndexOf(':', column - 1)
  if (position < 0 || isForeign(place)) return ''
  const slash = Math.max(place.lastIndexOf('/'), place.lastIndexOf('\\'))
  const file = place.slice(slash + 1, position).replace(/\?.*$/, '')
  const name = open < 0 ? '' : line.slice(0, open).replace(/^(?:async |new )| \[as .*$/g, '')
  return `${name} ${file.replace(/[-.][0-9A-Za-z_-]{8,64}(?=\.)/, removeHash)}`
})

/** Frames of Node and of packages show where an error surfaced, not which code caused it. */
function isForeign(place: string): boolean {
  return place.includes('node:') || place.includes('node_modules') || place.includes('<anonymous>')
}

/** Removes the content hash of bundlers from a file name: "index-B7x0q3Zk.js". */
function removeHash(part: string): string {
  return /\d/.test(part) ? '' : part
}

/**
 * Variable parts of messages: quoted values, query strings, e-mail addresses, absolute paths,
 * UUIDs, and words with a digit. No two alternatives can start at the same place, so matching is
 * linear.
 */
const variable =
  /"[^"]*"|`[^`]*`|(?<![\w])'[^']*'(?!\w)|(?<=\S)[?#][^\s"'`]+|(?<![\w.+-])[\w.+-]+@[\w.-]+|(?<![\w:/\\.])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s"'`,;()]+|(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])|(?<![\w-])(?=[\w-]*\d)[\w-]+(?:[.:,]\d[\w-]*)*|(?<![\w-])(?:[a-f]{8,}|[A-F]{8,})(?![\w-])/g

/** Long messages are not cached: a slice would keep the whole string in memory. */
function wordsOf(message: string, masked?: string[]): string {
  if (masked) return normalise(message.slice(0, maxMessage), (part) => masked.push(part))
  return message.length > maxMessage
    ? normalise(message.slice(0, maxMessage))
    : wordsOfShort(message)
}

const wordsOfShort = memoize(maxKnown, (message: string) => normalise(message))

function normalise(message: string, onMask?: (part: string) => void): string {
  const mask = (part: string): string => {
    onMask?.(part)
    return '#'
  }
  // A replacement by a string is faster than by a function.
  return (onMask ? message.replace(variable, mask) : message.replace(variable, '#'))
    .replace(/#(?:[\s,;:.+-]*#)+/g, '#')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase()
    .slice(0, maxWords)
}
