import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

describe('the package', () => {
  it('contains the code and the docs, and no build files', async () => {
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
    })
    const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
    const paths = files.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining([
        'dist/index.js',
        'dist/index.d.ts',
        'dist/cli/main.js',
        'dist/server/page/index.html',
        'dist/server/page/page.js',
        'README.md',
      ]),
    )
    expect(paths.filter((path) => /\.map$|\.built$|\.tsbuildinfo$/.test(path))).toEqual([])
    const outside = paths.filter((path) => !/^(dist|docs|ops|proto)\/|^[A-Z]+(\.md)?$/.test(path))
    expect(outside).toEqual(['package.json'])
  })

  it('is built before it is packed', () => {
    expect(manifest.scripts.prepack).toBe('node scripts/ready.mjs build')
  })

  it('names its repository and its issue tracker', () => {
    expect(manifest.repository.url).toMatch(/^git\+https:/)
    expect(manifest.homepage).toMatch(/^https:/)
    expect(manifest.bugs).toMatch(/^https:/)
  })
})
