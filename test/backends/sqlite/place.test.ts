import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FilePlace } from '../../../src/backends/sqlite/place.ts'

describe('FilePlace', () => {
  let directory: string
  let path: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'redrive-place-'))
    path = join(directory, 'file')
    await writeFile(path, '')
  })

  afterEach(() => rm(directory, { recursive: true }))

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
