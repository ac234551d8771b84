import type { Failure } from '../letter/letter.ts'
import { remembered } from '../letter/remembered.ts'
import { hash64 } from './hash.ts'
import { layersOf } from './layers.ts'

/** What tells the failures of one cause from those of another. */
export interface Fingerprint {
  value: string
  version: 1
  /** What it was made of: queue, name, code, cause-code, status, frames, message. */
  used: string[]
}

const maxMessage = 1024
const maxStack = 4096
const maxFrames = 3
/** How much of a message counts, once it is normalised. */
const maxWords = 256
/** Failures come from few places many times: what a frame or a message says is worked out once. */
const maxKnown = 1000

/**
 * One cause, one fingerprint. It is made of the queue, the error's name, its code and status, and the top frames of
 * the user's own code, without lines; where there are no such frames, of the message without what varies in it
 * (ids, numbers, quoted values, addresses, paths). Bounded in what it reads.
 */
export function fingerprint(queue: string, failure: Failure): Fingerprint {
  const used: string[] = []
  let text = ''
  const add = (part: string, value: string): void => {
    used.push(part)
    text += `${part} ${value.length} ${value}`
  }
  add('queue', queue)
  add('name', failure.name.slice(0, 200))
  if (failure.code !== undefined) add('code', failure.code.slice(0, 200))
  else {
    const cause = layersOf(failure).find((layer) => layer.code !== undefined)
    if (cause?.code !== undefined) add('cause-code', cause.code.slice(0, 200))
  }
  if (failure.status !== undefined) add('status', String(failure.status))
  const frames = failure.stack === undefined ? '' : framesOf(failure.stack, failure)
  if (frames) add('frames', frames)
  else add('message', wordsOf(failure.message))
  return { value: `v1-${hash64(text)}`, version: 1, used }
}

const frameStart = '\n    at '

/** Function and file of the top frames of the user's own code, a line each; empty when there are none. */
function framesOf(whole: string, { name, message }: Failure): string {
  const head = name.length + 2
  // The message comes before the frames, may be longer than all of them, and may hold what looks like one.
  const from = whole.startsWith(message, head) ? head + message.length : 0
  const stack = whole.slice(from, from + maxStack)
  let frames = ''
  let last = ''
  let start = stack.indexOf(frameStart)
  for (let count = 0; start >= 0 && count < maxFrames;) {
    const line = start + frameStart.length
    const newline = stack.indexOf('\n', line)
    const frame = frameIn(stack.slice(line, newline < 0 ? stack.length : newline))
    // Recursion is one frame, however deep it went.
    if (frame !== '' && frame !== last) {
      frames += `${frame}\n`
      last = frame
      count++
    }
    start = newline < 0 ? -1 : stack.indexOf(frameStart, newline)
  }
  return frames
}

/** "async charge (file:///app/src/pay.ts:12:34)" becomes "charge pay.ts". Empty when it is not the user's code. */
const frameIn = remembered(maxKnown, (line: string) => {
  const open = line.endsWith(')') ? line.indexOf(' (') : -1
  const place = open < 0 ? line : line.slice(open + 2, -1)
  const column = place.lastIndexOf(':')
  const position = place.lastIndexOf(':', column - 1)
  if (position < 0 || isForeign(place)) return ''
  const slash = Math.max(place.lastIndexOf('/'), place.lastIndexOf('\\'))
  const file = place.slice(slash + 1, position).replace(/\?.*$/, '')
  const name = open < 0 ? '' : line.slice(0, open).replace(/^(?:async |new )| \[as .*$/g, '')
  return `${name} ${file.replace(/[-.][0-9A-Za-z_-]{8,64}(?=\.)/, hashed)}`
})

/** Frames of Node, of packages and of no file say where it surfaced, not whose fault it is. */
function isForeign(place: string): boolean {
  return place.includes('node:') || place.includes('node_modules') || place.includes('<anonymous>')
}

/** Bundlers put a hash of the content into file names: "index-B7x0q3Zk.js". It changes with every build. */
function hashed(part: string): string {
  return /\d/.test(part) ? '' : part
}

/**
 * What varies from case to case: quoted values, queries of addresses, e-mails, absolute paths, UUIDs, and words
 * with a digit in them. Each alternative starts at a place where no other start can be, so it stays linear.
 */
const varying =
  /"[^"]*"|`[^`]*`|(?<![\w])'[^']*'(?!\w)|(?<=\S)[?#][^\s"'`]+|(?<![\w.+-])[\w.+-]+@[\w.-]+|(?<![\w:/\\.])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s"'`,;()]+|(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])|(?<![\w-])(?=[\w-]*\d)[\w-]+(?:[.:,]\d[\w-]*)*|(?<![\w-])(?:[a-f]{8,}|[A-F]{8,})(?![\w-])/g

/** A long one is not remembered: the part of it that counts would keep the whole. */
function wordsOf(message: string): string {
  return message.length > maxMessage
    ? normalised(message.slice(0, maxMessage))
    : wordsOfShort(message)
}

const wordsOfShort = remembered(maxKnown, normalised)

function normalised(message: string): string {
  return message
    .replace(varying, '#')
    .replace(/#(?:[\s,;:.+-]*#)+/g, '#')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase()
    .slice(0, maxWords)
}
