// The commands that README.md, CONTRIBUTING.md and docs/ name, for the test that checks them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { blocksOf, pages } from './blocks.ts'

const root = join(import.meta.dirname, '../..')

export interface DocumentedCommand {
  page: string
  line: number
  /** The words, without quotes, redirections and comments. */
  words: string[]
  /** Named within a sentence, where arguments may be left out. */
  inText: boolean
}

/** Pages that people have written. Those in docs/reference are written from the tables. */
export const writtenPages: readonly string[] = ['CONTRIBUTING.md', ...pages].filter(
  (page) => !page.startsWith('docs/reference/'),
)

/** Every command of the shell blocks, and every `code` of a sentence that is one. */
export function readCommands(): DocumentedCommand[] {
  return writtenPages.flatMap((page) => [
    ...blocksOf(page, 'sh').flatMap(({ line, code }) =>
      logicalLines(code).flatMap(({ text, at }) =>
        splitCommands(text).map((words) => ({ page, line: line + at, words, inText: false })),
      ),
    ),
    ...readSpans(page)
      .filter(({ code }) => /^(npx )?redrive [a-z-]|^npm (run|test|start)|^node /.test(code))
      .flatMap(({ line, code }) =>
        splitCommands(code).map((words) => ({ page, line, words, inText: true })),
      ),
  ])
}

/** The commands of the examples in a help text. What they do is two spaces or more behind them. */
export function readExamples(help: string): string[][] {
  return [...help.matchAll(/^ {2}(redrive .*?)( {2,}.*)?$/gm)].flatMap((match) =>
    splitCommands(match[1]!).filter((words) => words[0] === 'redrive'),
  )
}

/** Every `code` outside of blocks. */
export function readSpans(page: string): { line: number; code: string }[] {
  const text = readFileSync(join(root, page), 'utf8')
  const blank = (block: string): string => block.replaceAll(/[^\n]/g, '')
  const prose = text.replaceAll(/^( *)```[\s\S]*?^\1```$/gm, blank)
  return [...prose.matchAll(/`([^`]+)`/g)].map((match) => ({
    line: prose.slice(0, match.index).split('\n').length,
    code: match[1]!.replaceAll(/\s+/g, ' '),
  }))
}

/** Lines, of which some end with a backslash and continue. */
function logicalLines(code: string): { text: string; at: number }[] {
  let at = 0
  return code.split(/(?<!\\)\n/).map((text) => {
    const line = { text: text.replaceAll('\\\n', ' '), at }
    at += text.split('\n').length
    return line
  })
}

/** The commands of a line: those around `|`, `&&` and `;`, and those within `$(…)` and `<(…)`. */
function splitCommands(line: string): string[][] {
  const commands: string[][] = [[]]
  let isTarget = false
  for (const [token] of line.matchAll(
    /"[^"]*"|'[^']*'|[<>]\(|\$\(|&&|[|;&)]|>>?|<|#.*|[^\s"'|;&<>()]+/g,
  )) {
    if (token.startsWith('#')) break
    if (/^(>>?|<)$/.test(token)) isTarget = true
    else if (/^([<>$]\(|&&|[|;&)])$/.test(token)) commands.push([])
    else if (isTarget) isTarget = false
    else commands.at(-1)!.push(token.replaceAll(/^["']|["']$/g, ''))
  }
  return commands
    .map((words) => words.slice(words[0] === '$' ? 1 : 0))
    .map((words) => words.slice(words[0] === 'npx' ? 1 : 0))
    .filter((words) => words.length > 0)
}
