import { describe, expect, it } from 'vitest'
import { checkCommit, type Commit } from '../../scripts/test/commits.ts'

const aCommit = (change: Partial<Commit>): Commit => ({
  id: '0123456789abcdef',
  message: 'Fix a fault\n\nIt was wrong because of this.',
  files: [{ path: 'src/a.ts', lines: 61 }],
  ...change,
})

describe('checkCommit', () => {
  it('accepts a change with its reason', () => {
    expect(checkCommit(aCommit({}))).toEqual([])
  })

  it('accepts a small change without a body', () => {
    const files = [{ path: 'src/a.ts', lines: 60 }]
    expect(checkCommit(aCommit({ message: 'Fix a fault', files }))).toEqual([])
  })

  it('names a larger change without a body', () => {
    expect(checkCommit(aCommit({ message: 'Fix a fault\n\n' }))).toEqual([
      'commit 01234567 (Fix a fault): 61 changed lines need a body that says what was wrong and why this is right',
    ])
  })

  it('names a subject that is too long', () => {
    const [problem] = checkCommit(aCommit({ message: `${'x'.repeat(73)}\n\nWhy.` }))
    expect(problem).toContain('the subject has 73 characters; at most 72')
  })

  it('names a change that is too large to read, without generated files and pages', () => {
    const pages = { path: 'docs/a.md', lines: 9000 }
    const generated = { path: 'src/pipeline/proto/a.ts', lines: 9000 }
    const files = [pages, generated, { path: 'src/a.ts', lines: 1500 }]
    expect(checkCommit(aCommit({ files }))).toEqual([])
    const [problem] = checkCommit(aCommit({ files: [...files, { path: 'test/a.ts', lines: 1 }] }))
    expect(problem).toContain('1501 changed lines of code; at most 1500')
  })
})
