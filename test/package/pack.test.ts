import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../processes.ts'
import manifest from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')

describe('the package', () => {
  it('contains the code and the built documentation, and no build files', async () => {
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
        'dist/web/index.html',
        'dist/docs/index.html',
        'dist/docs/reference/config.schema.json',
        'README.md',
      ]),
    )
    expect(paths.filter((path) => /\.map$|\.built$|\.tsbuildinfo$/.test(path))).toEqual([])
    const outside = paths.filter((path) => !/^(dist|ops|proto)\/|^[A-Z]+(\.md)?$/.test(path))
    expect(outside).toEqual(['package.json'])
  })

  it('is built before it is packed', () => {
    expect(manifest.scripts.prepack).toBe('node scripts/ready.mjs build site')
  })

  it('names its repository and its issue tracker', () => {
    expect(manifest.repository.url).toMatch(/^git\+https:/)
    expect(manifest.homepage).toMatch(/^https:/)
    expect(manifest.bugs).toMatch(/^https:/)
  })
})
