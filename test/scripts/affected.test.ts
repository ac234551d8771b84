import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findAffected, testsInDepth } from '../../scripts/test/affected.ts'
import { aFolder } from '../folders.ts'

const root = aFolder('affected')
const files: Readonly<Record<string, string>> = {
  'src/a/a.ts': 'export const a = 1',
  'src/a/b.ts': "import { a } from './a.ts'\nexport const b = a",
  'src/c.ts': "import type { T } from './a/a.ts'\nexport const c: T = 1",
  'src/program.ts': "import { b } from './a/b.ts'\nconsole.log(b)",
  'test/depth.ts': 'export const isDeep = false',
  'test/contract.ts': "import { isDeep } from './depth.ts'\nexport const runs = isDeep ? 9 : 1",
  'test/a/b.test.ts': "import { b } from '../../src/a/b.ts'\nb",
  'test/c.test.ts': "import { c } from '../src/c.ts'\nc",
  'test/far.test.ts': "import { runs } from './contract.ts'\nstart('../src/program.ts', runs)",
  'test/web/page.test.ts': '',
  'test/tidy.test.ts': '',
}
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

describe('findAffected', () => {
  it('finds tests by imports and by the path of a program, the tests of the folder first', () => {
    const { files: found } = findAffected(root, ['src/a/a.ts'])
    expect(found[0]).toBe('test/a/b.test.ts')
    expect(found.toSorted()).toEqual(['test/a/b.test.ts', 'test/far.test.ts', 'test/tidy.test.ts'])
  })

  it('leaves out imports of types, which the compiler checks', () => {
    expect(findAffected(root, ['src/a/a.ts']).files).not.toContain('test/c.test.ts')
  })

  it('knows which tests read whole folders', () => {
    const { files: found } = findAffected(root, ['web/src/page.tsx'])
    expect(found.toSorted()).toEqual(['test/tidy.test.ts', 'test/web/page.test.ts'])
  })

  it('runs all tests after a change that all depend on, and names it', () => {
    const { files: found, all } = findAffected(root, ['src/c.ts', 'package.json'])
    expect(all).toBe('package.json')
    expect(found).toHaveLength(5)
  })
})

describe('testsInDepth', () => {
  it('finds the tests that reach the depth of the run', () => {
    expect(testsInDepth(root)).toEqual(['test/far.test.ts'])
  })
})
