import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { takeLock } from '../../../src/stores/spool/lock.ts'
import { aFolder } from './spool-bench.ts'

vi.mock(import('node:fs'), async (original) => {
  const real = await original()
  return { ...real, chmodSync: vi.fn(real.chmodSync) }
})

it('is nobody’s when its file is taken away as it is taken', async () => {
  await using folder = await aFolder()
  const path = join(folder.path, 'a.lock')
  const real = vi.mocked(chmodSync).getMockImplementation()!
  vi.mocked(chmodSync).mockImplementationOnce((...given) => {
    rmSync(path)
    real(...given)
  })
  expect(takeLock(path)).toBeUndefined()
  takeLock(path)!.remove()
})

it('is held by one at a time, also within a process', async () => {
  await using folder = await aFolder()
  const path = join(folder.path, 'a.lock')
  const lock = takeLock(path)!
  expect(takeLock(path)).toBeUndefined()
  expect(takeLock(path)).toBeUndefined()
  lock.release()
  const again = takeLock(path)!
  again.remove()
  expect(existsSync(path)).toBe(false)
})

it('falls to the next when the process that holds it is killed', async () => {
  await using folder = await aFolder()
  const path = join(folder.path, 'a.lock')
  const source = join(import.meta.dirname, '../../../src/stores/spool/lock.ts')
  const code = `import { takeLock } from ${JSON.stringify(source)}
    console.log(takeLock(${JSON.stringify(path)}) !== undefined); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code])
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  expect(said.toString()).toBe('true\n')
  expect(takeLock(path)).toBeUndefined()
  child.kill('SIGKILL')
  await once(child, 'exit')
  const lock = takeLock(path)
  expect(lock).toBeDefined()
  lock!.remove()
})
