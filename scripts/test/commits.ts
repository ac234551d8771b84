// Rules for commits, so that blame and bisect lead to one change and its reason. They apply to
// commits made on top of the one that added this file.
import { execFileSync } from 'node:child_process'
import { root } from './commands.ts'

const maxSubject = 72
/** A change of more lines needs a body that says why. */
const linesWithoutBody = 60
const maxLines = 1500

/** Files that are written by programs. */
const generated =
  /^package-lock\.json$|^src\/pipeline\/proto\/|^docs\/reference\/|^test\/cli\/output\/golden\/|^docs\/quality\.md$/
/** Files whose lines count towards the limit of a commit. */
const code = /\.(ts|tsx|mjs|js|css|sql|lua|proto|java|py|sh)$/

export interface Commit {
  readonly id: string
  readonly message: string
  /** The changed lines of each file, without those that a move keeps. */
  readonly files: readonly { readonly path: string; readonly lines: number }[]
}

/** What is wrong with a commit. */
export function checkCommit({ id, message, files }: Commit): string[] {
  const [subject = '', ...rest] = message.trim().split('\n')
  const written = files.filter(({ path }) => !generated.test(path))
  const count = (paths: readonly { lines: number }[]): number =>
    paths.reduce((sum, { lines }) => sum + lines, 0)
  const all = count(written)
  const ofCode = count(written.filter(({ path }) => code.test(path)))
  const name = `commit ${id.slice(0, 8)} (${subject.slice(0, 50)})`
  return [
    ...(subject.length > maxSubject
      ? [`${name}: the subject has ${subject.length} characters; at most ${maxSubject}`]
      : []),
    ...(all > linesWithoutBody && rest.join('').trim() === ''
      ? [`${name}: ${all} changed lines need a body that says what was wrong and why this is right`]
      : []),
    ...(ofCode > maxLines
      ? [`${name}: ${ofCode} changed lines of code; at most ${maxLines}, so divide it`]
      : []),
  ]
}

function git(...args: string[]): string {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 } as const
  return execFileSync('git', args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] })
}

/** The commits since this check exists. Nothing outside of a git clone or in a shallow one. */
function commitsToCheck(): Commit[] {
  try {
    const added = ['log', '--diff-filter=A', '--format=%H', '--', 'scripts/test/commits.ts']
    const first = git(...added)
      .trim()
      .split('\n')
      .at(-1)!
    if (first === '' || git('rev-parse', '--is-shallow-repository').trim() === 'true') return []
    const ids = git('rev-list', '--no-merges', '--ancestry-path', `${first}..HEAD`)
    return ids.split('\n').filter(Boolean).map(readCommit)
  } catch {
    return []
  }
}

function readCommit(id: string): Commit {
  const message = git('log', '-1', '--format=%B', id)
  const rows = git('show', '--format=', '--numstat', '-M', '-z', id).split('\0').filter(Boolean)
  const files: { path: string; lines: number }[] = []
  for (let at = 0; at < rows.length; at++) {
    const [added, removed, path] = rows[at]!.split('\t')
    // The paths of a move are the next two entries.
    const isMove = path === ''
    if (isMove) at += 2
    const lines = (Number(added) || 0) + (Number(removed) || 0)
    files.push({ path: isMove ? rows[at]! : path!, lines })
  }
  return { id, message, files }
}

export const findBadCommits = (): string[] => commitsToCheck().flatMap(checkCommit)
