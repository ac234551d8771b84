import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { reasons } from '../../src/letter/letter.ts'
import { run } from '../processes.ts'

const root = join(import.meta.dirname, '../..')

describe('docs/concepts/states.md', () => {
  it('explains every reason that something sets', () => {
    const page = readFileSync(join(root, 'docs/concepts/states.md'), 'utf8')
    const unused = ['superseded']
    const missing = reasons.filter((reason) => !page.includes(`| \`${reason}\``))
    expect(missing).toEqual(unused)
  })
})

describe('the reference', () => {
  it('equals what npm run docs writes', async () => {
    const { stdout } = await run(process.execPath, ['scripts/docs.ts', '--check'], {
      cwd: root,
    }).catch((error: { stdout: string }) => error)
    expect(stdout).toBe('')
  })

  it('has every event', () => {
    const source = readFileSync(join(root, 'src/observer.ts'), 'utf8')
    const [, union = ''] = /export type RedriveEvent =([\s\S]*?)export type/.exec(source) ?? []
    const page = readFileSync(join(root, 'docs/reference/events.md'), 'utf8')
    const namesOf = (text: string, pattern: RegExp): string[] =>
      [...text.matchAll(pattern)].map((match) => match[1]!)
    expect(namesOf(page, /^\| `([\w-]+)`/gm)).toEqual(namesOf(union, /\btype: '([\w-]+)'/g))
  })
})
