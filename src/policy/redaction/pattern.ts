import { RE2JS } from 're2js'
import type { Span } from './spans.ts'

const maxLength = 500
/** Instructions of a compiled pattern. */
const maxSize = 4000

/** A pattern whose matches are found in time that is linear in the length of the text. */
export interface Pattern {
  /** The matches, in order and without overlap. */
  find(text: string): Span[]
}

/**
 * Compiles a pattern for RE2, which does not backtrack, so that no text makes it slow. It has no
 * lookaround and no backreferences. Throws a TypeError that says what is wrong.
 */
export function compilePattern(given: string | RegExp): Pattern {
  const { source, flags } = typeof given === 'string' ? { source: given, flags: '' } : given
  const unknown = flags.replaceAll(/[giu]/g, '')
  if (unknown !== '') throw new TypeError(`has the flag ${unknown}: only g, i and u are supported`)
  if (source.length > maxLength)
    throw new TypeError(`has ${source.length} characters, the limit is ${maxLength}`)
  const compiled = compile(source, flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0)
  if (compiled.programSize() > maxSize)
    throw new TypeError('is too large: use fewer or smaller repetitions')
  return { find: (text) => findSpans(compiled, text) }
}

function compile(source: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source), flags)
  } catch (error) {
    throw new TypeError(`is not supported: ${(error as Error).message}`, { cause: error })
  }
}

function findSpans(pattern: RE2JS, text: string): Span[] {
  const spans: Span[] = []
  const matcher = pattern.matcher(text)
  while (matcher.find())
    if (matcher.end() > matcher.start()) spans.push({ start: matcher.start(), end: matcher.end() })
  return spans
}
