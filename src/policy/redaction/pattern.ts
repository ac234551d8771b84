import type { Span } from './spans.ts'

/*
 * Regular expressions that take linear time: all states of the automaton are followed at once, so
 * that no input makes a pattern slow. Lookaround and backreferences need another method, and are
 * rejected.
 */

type Node =
  | { kind: 'char'; test: CharTest }
  | { kind: 'assert'; at: Assertion }
  | { kind: 'sequence' | 'choice'; items: Node[] }
  | { kind: 'repeat'; item: Node; min: number; max: number }
type CharTest = (code: number) => boolean
type Assertion = 'start' | 'end' | 'boundary' | 'inside'

type Instruction =
  | { op: 'char'; test: CharTest }
  | { op: 'assert'; at: Assertion }
  | Split
  | { op: 'match' }

/** Continues with all of its targets. */
interface Split {
  op: 'split'
  targets: number[]
}

const maxLength = 500
const maxRepeats = 1000
const maxInstructions = 4000

/** A pattern whose matches are found in time that is linear in the length of the text. */
export interface Pattern {
  /** The parts of the text that matches cover, in order and without overlap. */
  find(text: string): Span[]
}

/** Compiles a pattern. Throws a TypeError that says what is not supported. */
export function compilePattern(given: string | RegExp): Pattern {
  const { source, flags } = typeof given === 'string' ? { source: given, flags: '' } : given
  const unknown = flags.replaceAll(/[giu]/g, '')
  if (unknown !== '') throw new TypeError(`has the flag ${unknown}: only g, i and u are supported`)
  if (source.length > maxLength)
    throw new TypeError(`has ${source.length} characters, the limit is ${maxLength}`)
  const program: Instruction[] = []
  emit(new Parser(source, flags.includes('i')).parse(), program)
  program.push({ op: 'match' })
  return { find: (text) => findSpans(program, text) }
}

class Parser {
  readonly #source: string
  readonly #flags: string
  #at = 0

  constructor(source: string, ignoreCase: boolean) {
    this.#source = source
    this.#flags = ignoreCase ? 'i' : ''
  }

  parse(): Node {
    const node = this.#choice()
    if (this.#at < this.#source.length) throw this.#problem('has a `)` without `(`')
    return node
  }

  #choice(): Node {
    const items = [this.#sequence()]
    while (this.#take('|')) items.push(this.#sequence())
    return items.length === 1 ? items[0]! : { kind: 'choice', items }
  }

  #sequence(): Node {
    const items: Node[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!))
      items.push(this.#quantified(this.#atom()))
    return { kind: 'sequence', items }
  }

  #atom(): Node {
    const char = this.#source[this.#at]!
    if ('*+?'.includes(char)) throw this.#problem(`has nothing to repeat before \`${char}\``)
    if (this.#take('(')) return this.#group()
    if (this.#take('^')) return { kind: 'assert', at: 'start' }
    if (this.#take('$')) return { kind: 'assert', at: 'end' }
    if (this.#take('\\b')) return { kind: 'assert', at: 'boundary' }
    if (this.#take('\\B')) return { kind: 'assert', at: 'inside' }
    const [atom] = atomForm.exec(this.#source.slice(this.#at)) ?? []
    if (atom === undefined)
      throw this.#problem(
        `has \`${this.#source.slice(this.#at, this.#at + 3)}\`, which is not supported`,
      )
    this.#at += atom.length
    return { kind: 'char', test: testOf(atom, this.#flags) }
  }

  #group(): Node {
    if (!this.#take('?:') && this.#source[this.#at] === '?')
      throw this.#problem('has a group that begins with `(?`: only `(?:` is supported')
    const node = this.#choice()
    if (!this.#take(')')) throw this.#problem('has a `(` without `)`')
    return node
  }

  #quantified(item: Node): Node {
    const [form, min, comma, max] = quantifierForm.exec(this.#source.slice(this.#at)) ?? []
    if (form === undefined) return item
    this.#at += form.length
    const node = repeat(item, form, { min, comma, max })
    const [next] = quantifierForm.exec(this.#source.slice(this.#at)) ?? []
    if (next !== undefined) throw this.#problem(`has \`${next}\` after a repetition`)
    return node
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #problem(why: string): TypeError {
    return new TypeError(`${why} (at character ${this.#at + 1})`)
  }
}

/** One character: a class, an escape, or itself. */
const atomForm =
  /^(?:\[(?:\\[^\dA-Zaceg-mo-qyz]|\\[dDwWsS]|[^\]\\])+\]|\\(?:[dDwWsSfnrtv]|x[\da-f]{2}|u[\da-f]{4}|[^\da-z])|[^[\\{}])/i
/** A repetition. Lazy and greedy ones are the same: everything that a match covers counts. */
const quantifierForm = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/

function repeat(
  item: Node,
  form: string,
  bounds: { min?: string | undefined; comma?: string | undefined; max?: string | undefined },
): Node {
  if (form.startsWith('*')) return { kind: 'repeat', item, min: 0, max: Infinity }
  if (form.startsWith('+')) return { kind: 'repeat', item, min: 1, max: Infinity }
  if (form.startsWith('?')) return { kind: 'repeat', item, min: 0, max: 1 }
  const min = Number(bounds.min)
  const upper = bounds.comma === '' ? min : Infinity
  const max = bounds.max ? Number(bounds.max) : upper
  if (min > maxRepeats || (max !== Infinity && max > maxRepeats) || max < min)
    throw new TypeError(`has the repetition ${form}: the limit is ${maxRepeats}`)
  return { kind: 'repeat', item, min, max }
}

/** Whether a UTF-16 code unit matches. The class itself is left to the engine of the language. */
function testOf(atom: string, flags: string): CharTest {
  const single = new RegExp(`^(?:${atom})$`, flags)
  const matches = (code: number): boolean => single.test(String.fromCharCode(code))
  const ascii = Array.from({ length: 128 }, (_, code) => matches(code))
  return (code) => (code < 128 ? ascii[code]! : matches(code))
}

function emit(node: Node, program: Instruction[]): void {
  if (program.length > maxInstructions)
    throw new TypeError('is too large: use fewer or smaller repetitions')
  switch (node.kind) {
    case 'char':
      program.push({ op: 'char', test: node.test })
      return
    case 'assert':
      program.push({ op: 'assert', at: node.at })
      return
    case 'sequence':
      for (const item of node.items) emit(item, program)
      return
    case 'choice':
      emitChoice(node.items, program)
      return
    case 'repeat':
      emitRepeat(node, program)
  }
}

function emitChoice(items: readonly Node[], program: Instruction[]): void {
  const split: Split = { op: 'split', targets: [] }
  program.push(split)
  const ends: Split[] = []
  for (const item of items) {
    split.targets.push(program.length)
    emit(item, program)
    const end: Split = { op: 'split', targets: [] }
    program.push(end)
    ends.push(end)
  }
  for (const end of ends) end.targets.push(program.length)
}

function emitRepeat(
  { item, min, max }: Extract<Node, { kind: 'repeat' }>,
  program: Instruction[],
): void {
  for (let count = 0; count < min; count++) emit(item, program)
  const again = max === Infinity ? 1 : max - min
  for (let count = 0; count < again; count++) {
    const split: Split = { op: 'split', targets: [program.length + 1] }
    const start = program.push(split) - 1
    emit(item, program)
    if (max === Infinity) program.push({ op: 'split', targets: [start] })
    split.targets.push(program.length)
  }
}

/**
 * Runs all states over the text once. Of the threads in one state, the one that began first is
 * kept: what it covers includes what the others would cover.
 */
function findSpans(program: readonly Instruction[], text: string): Span[] {
  const spans: Span[] = []
  const seen = new Int32Array(program.length).fill(-1)
  let threads: Thread[] = []
  for (let at = 0; at <= text.length; at++) {
    const next: Thread[] = []
    const context = { program, text, at, seen, threads: next }
    for (const { pc, start } of threads) follow(context, pc, start)
    follow(context, 0, at)
    threads = []
    const code = text.charCodeAt(at)
    for (const { pc, start } of next) {
      const instruction = program[pc]!
      if (instruction.op === 'match' && start < at) addSpan(spans, { start, end: at })
      if (instruction.op === 'char' && at < text.length && instruction.test(code))
        threads.push({ pc: pc + 1, start })
    }
  }
  return spans
}

interface Thread {
  pc: number
  start: number
}

interface Position {
  program: readonly Instruction[]
  text: string
  at: number
  /** The last position at which each instruction was reached. */
  seen: Int32Array
  threads: Thread[]
}

/** Adds the instructions that can be reached without a character. */
function follow({ program, text, at, seen, threads }: Position, from: number, start: number): void {
  const pending = [from]
  for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
    if (seen[pc] === at) continue
    seen[pc] = at
    const instruction = program[pc]!
    if (instruction.op === 'split') pending.push(...instruction.targets)
    else if (instruction.op !== 'assert') threads.push({ pc, start })
    else if (holds(instruction.at, text, at)) pending.push(pc + 1)
  }
}

function holds(assertion: Assertion, text: string, at: number): boolean {
  if (assertion === 'start') return at === 0
  if (assertion === 'end') return at === text.length
  const isBoundary = isWord(text, at - 1) !== isWord(text, at)
  return assertion === 'boundary' ? isBoundary : !isBoundary
}

function isWord(text: string, at: number): boolean {
  return /\w/.test(text.charAt(at))
}

/** Ends only grow, so that only the last spans can overlap with a new one. */
function addSpan(spans: Span[], added: Span): void {
  let { start } = added
  for (let last = spans.at(-1); last && last.end >= start; last = spans.at(-1)) {
    start = Math.min(start, last.start)
    spans.pop()
  }
  spans.push({ start, end: added.end })
}
