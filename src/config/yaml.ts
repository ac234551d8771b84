import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import { dotted, emptyTree, isForbidden, keyOf, type Path, type Problem } from './layer.ts'

/** More nodes than any configuration needs, and a bound for the expansion of aliases. */
const maxNodes = 10_000
const maxDepth = 20

export interface ReadYaml {
  value: unknown
  origins: ReadonlyMap<string, string>
  problems: Problem[]
}

/**
 * Reads YAML 1.2 as plain data: no tags, no merge keys, no duplicate keys. `from` formats a line
 * number as an origin. Problems name the line and never its contents, which may be a secret.
 */
export function readYaml(text: string, from: (line: number) => string): ReadYaml {
  const lines = new LineCounter()
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line)
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    prettyErrors: false,
    lineCounter: lines,
  })
  const problems: Problem[] = [...document.errors, ...document.warnings].map(({ code, pos }) => ({
    key: '',
    from: from(lineAt(pos[0])),
    text: problemTexts[code] ?? `is not valid YAML (${code.toLowerCase().replaceAll('_', ' ')})`,
  }))
  if (problems.length > 0) return { value: undefined, origins: new Map(), problems }
  const reader = new Reader(document, (offset) => from(lineAt(offset)))
  const value = reader.read(document.contents, [])
  return { value, origins: reader.origins, problems: reader.problems }
}

const problemTexts: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'duplicate key',
  MULTIPLE_DOCS: 'a second document begins here: use one document per file',
  TAG_RESOLVE_FAILED: 'has a tag: use plain values',
  TAB_AS_INDENT: 'is indented with a tab: use spaces',
}

/**
 * Converts a parsed document to plain data. It counts nodes, so that nested aliases cannot exhaust
 * the memory.
 */
class Reader {
  readonly origins = new Map<string, string>()
  readonly problems: Problem[] = []
  readonly #document: Document
  readonly #placeOf: (offset: number) => string
  #nodes = 0

  constructor(document: Document, placeOf: (offset: number) => string) {
    this.#document = document
    this.#placeOf = placeOf
  }

  read(node: unknown, path: Path): unknown {
    if (this.#nodes > maxNodes) return undefined
    if (++this.#nodes > maxNodes || path.length > maxDepth) {
      this.#nodes = maxNodes + 1
      this.problems.push({
        key: dotted(path),
        text: `is too large or too deep: at most ${maxNodes} values and ${maxDepth} levels`,
      })
      return undefined
    }
    if (isAlias(node)) {
      const target = node.resolve(this.#document)
      if (target) return this.read(target, path)
      const from = this.#placeOf(rangeOf(node))
      this.problems.push({ key: dotted(path), from, text: 'is an alias without an anchor' })
      return undefined
    }
    if (isScalar(node)) return node.value
    if (isSeq(node))
      return node.items.map((item, index) => {
        this.#recordOrigin([...path, index], item)
        return this.read(item, [...path, index])
      })
    if (!isMap(node)) return null
    const tree = emptyTree()
    for (const { key, value } of node.items) {
      const name = nameOf(key)
      const from = this.#placeOf(rangeOf(key))
      if (name === undefined || isForbidden(name) || Object.hasOwn(tree, name)) {
        const text =
          name === undefined ? 'has a key that is not a string' : 'is not allowed as a key'
        this.problems.push({ key: dotted([...path, name ?? '']), from, text })
        continue
      }
      const below = [...path, name]
      this.origins.set(keyOf(below), from)
      tree[name] = this.read(value, below)
    }
    return tree
  }

  #recordOrigin(path: Path, node: unknown): void {
    this.origins.set(keyOf(path), this.#placeOf(rangeOf(node)))
  }
}

/** A key as it is written: 007 stays "007". */
function nameOf(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined
  return typeof key.value === 'string' ? key.value : key.source
}

function rangeOf(node: unknown): number {
  return (node as { range?: readonly number[] | null } | null)?.range?.[0] ?? 0
}
