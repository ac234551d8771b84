// Reads the declaration files that the compiler writes to dist. Each declaration begins at the first
// column, after its doc comment, so that no parser is needed.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Declaration {
  name: string
  /** The text of its doc comment. */
  comment: string
  /** The declaration without `export` and `declare`; overloads follow each other. */
  code: string
  isExported: boolean
  /** Whether it exists only for the compiler, or is exported with `export type`. */
  isType: boolean
  /** The declaration of a class that this one extends. */
  base?: Declaration
}

interface File {
  path: string
  declarations: Map<string, Declaration>
  /** `export { name } from` and `export * from` of other files; the name of the latter is `*`. */
  exports: Reference[]
  imports: Reference[]
}

interface Reference {
  name: string
  /** The name in the other file. */
  original: string
  /** `export type`: values cannot be imported. */
  isType: boolean
  path: string
}

const files = new Map<string, File>()

const comment = String.raw`\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n`
const begin = String.raw`(?:export|declare|import|interface|type|class|const|function)\b`
/** A doc comment, and a statement up to the next one or the end. */
const statement = new RegExp(
  `^(${comment})?(${begin}[\\s\\S]*?)(?=^(?:${comment})?${begin}|(?![\\s\\S]))`,
  'gm',
)

/** All exports of a declaration file, by name. */
export function readExports(path: string): Declaration[] {
  const file = readDeclarations(path)
  const own = [...file.declarations.values()].filter(({ isExported }) => isExported)
  const others = file.exports.flatMap((reference) => {
    if (reference.name === '*')
      return readExports(reference.path).filter((one) => !reference.isType || one.isType)
    const one =
      reference.path === path
        ? findDeclaration(file, reference.original)
        : readExports(reference.path).find(({ name }) => name === reference.original)
    if (!one) throw new Error(`${path} exports ${reference.name}, which has no declaration`)
    return [{ ...one, name: reference.name, isType: one.isType || reference.isType }]
  })
  const byName = new Map([...own, ...others].map((one) => [one.name, one]))
  return [...byName.values()].sort((a, b) => a.name.localeCompare(b.name))
}

function readDeclarations(path: string): File {
  const known = files.get(path)
  if (known) return known
  const file: File = { path, declarations: new Map(), exports: [], imports: [] }
  files.set(path, file)
  const text = readFileSync(path, 'utf8')
  for (const [, comment = '', code = ''] of text.matchAll(statement)) {
    const references = referencesOf(path, code)
    if (references) (code.startsWith('import') ? file.imports : file.exports).push(...references)
    else addDeclaration(file, comment, code.trim())
  }
  return file
}

/** What an import or a re-export names. Undefined for a declaration. */
function referencesOf(path: string, code: string): Reference[] | undefined {
  const match = /^(?:import|export)(?: type)? (?:\*|\{([^}]*)\})(?:.* from '(.*)')?/s.exec(code)
  if (!match) return code.startsWith('import') ? [] : undefined
  const [, names, from] = match
  if (from !== undefined && !from.startsWith('.')) return []
  const target =
    from === undefined ? path : join(dirname(path), from).replace(/\.(ts|js)$/, '.d.ts')
  const isTypeOnly = /^\w+ type /.test(code)
  if (names === undefined) return [{ name: '*', original: '*', path: target, isType: isTypeOnly }]
  return names
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
    .map((one) => {
      const [original = '', name = original] = one.replace(/^type /, '').split(' as ')
      return { name, original, path: target, isType: isTypeOnly || one.startsWith('type ') }
    })
}

function addDeclaration(file: File, comment: string, code: string): void {
  const match =
    /^(export )?(?:declare )?((?:abstract )?(?:class|function|const|interface|type) (\w+)[\s\S]*)/.exec(
      code,
    )
  if (!match) return
  const [, exported, rest = '', name = ''] = match
  const before = file.declarations.get(name)
  const [, baseName] = /^class \w+(?:<.*?>)? extends (\w+)/.exec(rest) ?? []
  const base = baseName === undefined ? undefined : findDeclaration(file, baseName)
  file.declarations.set(name, {
    name,
    comment: before?.comment || textOf(comment),
    code: before ? `${before.code}\n${rest}` : rest,
    isExported: exported !== undefined,
    isType: /^(type|interface) /.test(rest),
    ...(base ? { base } : {}),
  })
}

function findDeclaration(file: File, name: string): Declaration | undefined {
  const reference = file.imports.find((one) => one.name === name)
  if (!reference) return file.declarations.get(name)
  return readDeclarations(reference.path).declarations.get(reference.original)
}

function textOf(comment: string): string {
  return comment.replaceAll(/^\/\*\*\s?|\s*\*\/\s*$|^ \* ?/gm, '').trim()
}
