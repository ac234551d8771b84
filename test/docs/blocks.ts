// The code blocks of README.md and docs/, for the tests that compile and run them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export interface Block {
  /** The path of the page, from the root of the repository. */
  page: string
  /** The line where the code begins. */
  line: number
  /** 1 for the first block of this language in the page. */
  number: number
  code: string
}

export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path))
    .sort(),
]

/** All blocks of one language, such as `ts` or `sh`. */
export function readBlocks(language: string): Block[] {
  return pages.flatMap((page) => blocksOf(page, language))
}

/** The blocks of one language in a page. */
export function blocksOf(page: string, language: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  const fence = /^( *)```(\S*)[^\n]*\n([\s\S]*?)^\1```$/gm
  return [...text.matchAll(fence)]
    .filter((match) => match[2] === language)
    .map((match, index) => ({
      page,
      line: text.slice(0, match.index).split('\n').length + 1,
      number: index + 1,
      code: match[3]!.replaceAll(new RegExp(`^${match[1]}`, 'gm'), ''),
    }))
}
