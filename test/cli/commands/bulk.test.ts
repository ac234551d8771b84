import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { BulkAction, BulkResult } from '../../../src/letter/bulk-action.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, expectToFit, hostileText, plainEnv, redrive } from '../run-cli.ts'

const folder = aFolder()
const main = join(import.meta.dirname, '../../../src/cli/main.ts')

async function aStore(count = 3) {
  const letters = Array.from({ length: count }, () => aLetter({ queue: 'orders', state: 'parked' }))
  const url = await aStoreFile(folder, letters)
  const run = (...args: string[]) => redrive([...args, '--store', url])
  const plan = async (...args: string[]): Promise<BulkAction> =>
    JSON.parse((await run('bulk', 'plan', ...args, '--json')).out) as BulkAction
  return { url, ids: letters.map(({ id }) => id), run, plan }
}

describe('redrive bulk', () => {
  it('plans, runs and reports an action', async () => {
    const { ids, run, plan } = await aStore()
    const { id, count, state } = await plan('archive', '--queue', 'orders', '--by', 'ada')
    expect({ count, state }).toEqual({ count: 3, state: 'planned' })
    const done = await run('bulk', 'run', id.slice(0, 13))
    expect(done).toMatchObject({ out: 'archive finished: 3 succeeded\n', exit: 0 })
    const { out } = await run('bulk', 'results', id, '--json')
    const results = out.trimEnd().split('\n')
    expect(results.map((line) => JSON.parse(line) as BulkResult)).toEqual(
      ids.map((letter) => ({ id: letter, outcome: 'succeeded' })),
    )
    expect((await run('bulk', 'list')).out).toContain('finished')
  })

  it('prints a plan that fits 80 columns and has no control characters', async () => {
    const failure = { ...aLetter().failure, message: hostileText }
    const url = await aStoreFile(
      folder,
      Array.from({ length: 7 }, () => aLetter({ queue: hostileText, state: 'parked', failure })),
    )
    const { out } = await redrive(['bulk', 'plan', 'retry', '--all', '--store', url])
    expect(out).toContain('retry 7 letters (7 parked)')
    expect(out).toContain('Nothing was changed.')
    expectToFit(out)
    expectToFit((await redrive(['bulk', 'list', '--store', url])).out)
  })

  it('rejects unknown actions, ids and plans without a filter', async () => {
    const { run } = await aStore()
    expect(await run('bulk', 'plan', 'explode', '--all')).toMatchObject({ exit: 2 })
    expect((await run('bulk', 'plan', 'retry')).err).toContain('bulk plan needs a filter')
    expect((await run('bulk', 'run', 'ffff')).err).toContain('ACTION_NOT_FOUND')
    expect((await run('bulk', 'plan', 'remove', '--queue', 'orders')).err).toContain('reason')
  })

  it('approves, pauses and cancels', async () => {
    const { run, plan } = await aStore()
    const { id } = await plan('archive', '--queue', 'orders')
    expect(await run('bulk', 'pause', id)).toMatchObject({ exit: 5 })
    expect(await run('bulk', 'approve', id, '--by', 'bob')).toMatchObject({ exit: 0 })
    expect((await run('bulk', 'cancel', id)).out).toContain('cancelled')
    expect(await run('bulk', 'run', id)).toMatchObject({ exit: 5 })
  })

  it('pauses on a signal and prints how to resume', async () => {
    const { url, run, plan } = await aStore(50)
    const { id } = await plan('archive', '--queue', 'orders', '--rate', '1')
    const child = spawn(process.execPath, [main, 'bulk', 'run', id, '--store', url], {
      env: plainEnv,
    })
    let err = ''
    const started = Promise.withResolvers<void>()
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      err += part
      if (err.includes('of 50')) started.resolve()
    })
    await started.promise
    child.kill('SIGINT')
    const [exit] = (await once(child, 'close')) as [number]
    expect(err).toContain(`Continue with: redrive bulk resume ${id}`)
    expect(exit).toBe(130)
    const action = JSON.parse((await run('bulk', 'show', id, '--json')).out) as BulkAction
    expect(action.state).toBe('paused')
    expect(action.progress.pending).toBeGreaterThan(0)
  })
})
