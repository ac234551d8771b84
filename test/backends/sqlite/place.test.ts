import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { FilePlace } from '../../../src/backends/sqlite/place.ts'
import { aFolder } from '../../folders.ts'
import { freshName } from '../../servers/servers.ts'

describe('FilePlace', () => {
  const folder = aFolder('place')
  let path: string

  beforeEach(async () => {
    path = join(folder, freshName())
    await writeFile(path, '')
  })

  it('reports a problem only while the file is missing', async () => {
    const place = new FilePlace(path)
    expect(place.problem()).toBeUndefined()
    await rename(path, `${path}-away`)
    expect(place.problem()).toMatch(/moved, removed or replaced/)
    await rename(`${path}-away`, path)
    expect(place.problem()).toBeUndefined()
  })

  it('detects another file at the same path', async () => {
    const place = new FilePlace(path)
    await writeFile(`${path}-other`, '')
    await rename(`${path}-other`, path)
    expect(place.problem()).toMatch(/moved, removed or replaced/)
  })

  it('requires a file that exists', async () => {
    await rm(path)
    expect(() => new FilePlace(path)).toThrow(/ENOENT/)
  })
})
