import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { placeOf } from '../../../src/backends/sqlite/place.ts'

describe('placeOf', () => {
  let directory: string
  let path: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'redrive-place-'))
    path = join(directory, 'file')
    await writeFile(path, '')
  })

  afterEach(() => rm(directory, { recursive: true }))

  it('has no problem while the file stays, nor once it is back', async () => {
    const place = placeOf(path)
    expect(place.problem()).toBeUndefined()
    await rename(path, `${path}-away`)
    expect(place.problem()).toMatch(/moved, removed or replaced/)
    await rename(`${path}-away`, path)
    expect(place.problem()).toBeUndefined()
  })

  it('is not deceived by another file of that name', async () => {
    const place = placeOf(path)
    await writeFile(`${path}-other`, '')
    await rename(`${path}-other`, path)
    expect(place.problem()).toMatch(/moved, removed or replaced/)
  })

  it('is that of a file that is there', async () => {
    await rm(path)
    expect(() => placeOf(path)).toThrow(/ENOENT/)
  })
})
