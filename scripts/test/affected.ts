// The test files that a change can touch: those that reach a changed file by imports, or by the
// path of a file that they start or read.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Affected {
  /** Test files, the nearest to the change first. */
  readonly files: string[]
  /** A changed file that every test may depend on. */
  readonly all?: string
}

const folders = ['src', 'web/src', 'test', 'scripts', 'bench', 'examples', 'docs', 'ops', 'proto']

/** Files that all tests depend on. */
const global =
  /^(package(-lock)?\.json|tsconfig\.json|vitest\.config\.ts|test\/(leaks|run-folder|process-table|processes|folders|depth)\.ts|test\/servers\/servers\.ts|scripts\/servers\/.*)$/

const isCode = (path: string): boolean => /\.(ts|tsx|mjs)$/.test(path)
const isTest = (path: string): boolean => path.endsWith('.test.ts')

/** All files of the folders, relative to the root. */
function listFiles(root: string): string[] {
  return folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
        .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1)),
    )
}

/** What a file imports, without types: those are checked by the compiler. */
function importsOf(path: string, text: string): string[] {
  const statement = /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:([^'";]*?)\sfrom\s+)?'(\.[^']+)'/g
  return [...text.matchAll(statement)]
    .filter(([, type, clause]) => {
      if (type) return false
      const names = /^\{([^}]*)\}$/.exec(clause?.trim() ?? '')?.[1]?.split(',')
      const values = names?.map((name) => name.trim()).filter(Boolean)
      return !values?.length || values.some((name) => !name.startsWith('type '))
    })
    .map(([, , , target]) => join(dirname(path), target!))
}

/** The files whose path, or whose folder, stands in a string of a file. */
function mentionsOf(path: string, text: string, files: ReadonlySet<string>): string[] {
  const strings = [...text.matchAll(/['"`]((?:\.{0,2}\/)?[\w@./-]*[\w-])['"`]/g)].map(
    ([, found]) => found!,
  )
  return strings
    .filter((found) => found.includes('/') || found.includes('.'))
    .flatMap((found) => [join(dirname(path), found), join(found)])
    .filter((target) => files.has(target))
}

/** The users of each file. */
function readUsers(root: string, files: readonly string[]): Map<string, string[]> {
  const known = new Set([...files, 'README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'compose.yaml'])
  const users = new Map<string, string[]>()
  for (const path of files.filter(isCode)) {
    const text = readFileSync(join(root, path), 'utf8')
    const typed = /(?:import|export)\s+type\s[^'";]*?'(\.[^']+)'/g
    const types = new Set([...text.matchAll(typed)].map(([, to]) => join(dirname(path), to!)))
    const imports = importsOf(path, text)
    const mentions = mentionsOf(path, text, known).filter((target) => !types.has(target))
    for (const target of new Set([...imports, ...mentions]))
      users.set(target, [...(users.get(target) ?? []), path])
  }
  return users
}

/** Tests that read whole folders, which no import shows. */
const readers: readonly [changed: RegExp, tests: RegExp][] = [
  [/./, /^test\/tidy\.test\.ts$/],
  [/\.md$/, /^test\/docs\//],
  [/^docs\//, /^test\/docs\//],
  [/^web\/src\//, /^test\/web\//],
  [/^ops\//, /^test\/(observers|pipeline)\/metrics\//],
  [/^proto\//, /^test\/pipeline\//],
  [/^src\/cli\//, /^test\/cli\/output\//],
]

/** The files that reach one of these, each with the number of steps. */
function reach(
  users: ReadonlyMap<string, readonly string[]>,
  from: readonly string[],
): Map<string, number> {
  const distances = new Map<string, number>(from.map((path) => [path, 0]))
  const queue = [...from]
  for (let path = queue.shift(); path !== undefined; path = queue.shift())
    for (const user of users.get(path) ?? []) {
      if (distances.has(user)) continue
      distances.set(user, distances.get(path)! + 1)
      queue.push(user)
    }
  return distances
}

/** The tests that changes of these files can touch, nearest first. */
export function findAffected(root: string, changed: readonly string[]): Affected {
  const files = listFiles(root)
  const tests = files.filter(isTest)
  const all = changed.find((path) => global.test(path))
  if (all !== undefined) return { files: tests, all }
  const users = readUsers(root, files)
  const distances = reach(users, changed)
  for (const [pattern, reader] of readers)
    if (changed.some((path) => pattern.test(path)))
      for (const test of tests.filter((path) => reader.test(path)))
        distances.set(test, Math.min(1, distances.get(test) ?? 1))
  // The tests of the folder of a changed file are the nearest.
  const mirrored = changed.map((path) => `${dirname(path).replace(/^src/, 'test')}/`)
  const rankOf = (test: string): number =>
    mirrored.some((folder) => test.startsWith(folder)) ? 0 : distances.get(test)!
  const reached = tests.filter((path) => distances.has(path))
  return { files: reached.toSorted((a, b) => rankOf(a) - rankOf(b)) }
}

/** The files that differ from the revision, and those that git does not know yet. */
export function changedFiles(root: string, revision: string): string[] {
  const git = (...args: string[]): string[] =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean)
  const tracked = git('diff', '--name-only', '--no-renames', revision)
  return [...tracked, ...git('ls-files', '--others', '--exclude-standard')]
}

/** The test files that do more when tests run in full. */
export function testsInDepth(root: string): string[] {
  const files = listFiles(root)
  const reached = reach(readUsers(root, files), ['test/depth.ts'])
  return files.filter((path) => isTest(path) && reached.has(path)).toSorted()
}
