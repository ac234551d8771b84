import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { BulkAction, BulkResult } from '../../../src/letter/bulk-action.ts'
import { decodePayload, encodePayload } from '../../../src/letter/payload.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { spawn } from '../../processes.ts'
import {
  aFolder,
  aStoreFile,
  main,
  expectToFit,
  hostileText,
  plainEnv,
  redrive,
} from '../run-cli.ts'

const folder = aFolder()

async function aStore(count = 3) {
  const letters = Array.from({ length: count }, () => aLetter({ queue: 'orders', state: 'parked' }))
  const url = await aStoreFile(folder, letters)
  const run = (...args: string[]) => redrive([...args, '--store', url])
  const plan = async (...args: string[]): Promise<BulkAction> =>
    JSON.parse((await run('bulk', 'plan', ...args, '--json')).out) as BulkAction
  return { url, ids: letters.map(({ id }) => id), run, plan }
}

/** A store with two letters whose amounts, 1 and 2, an edit has set to 0. */
async function anEditedStore() {
  const letters = [1, 2].map((amount) =>
    aLetter({
      queue: 'orders',
      state: 'parked',
      payload: { ...encodePayload({ amount }), version: 1 },
    }),
  )
  const url = await aStoreFile(folder, letters)
  const ids = letters.map(({ id }) => id)
  const run = (...args: string[]) => redrive([...args, '--store', url])
  const plan = async (...args: string[]): Promise<BulkAction> =>
    JSON.parse((await run('bulk', 'plan', ...args, '--json')).out) as BulkAction
  const patch = join(folder, 'patch.json')
  writeFileSync(patch, JSON.stringify([{ op: 'replace', path: '/amount', value: 0 }]))
  const edited = await plan('edit', '--queue', 'orders', '--patch', patch, '--reason', 'free')
  await run('bulk', 'run', edited.id)
  const amounts = async (): Promise<number[]> => {
    const store = sqliteStore({ path: url.slice('sqlite:'.length) })
    await store.open()
    const loaded = await store.get(ids)
    await store.close()
    return loaded.map(({ payload }) => (decodePayload(payload) as { amount: number }).amount)
  }
  return { run, plan, edited, amounts, ids }
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

  it('undoes an edit', async () => {
    const { run, plan, edited, amounts } = await anEditedStore()
    expect(await amounts()).toEqual([0, 0])
    const reason = ['--reason', 'wrong patch', '--by', 'bob']
    const refused = await run('bulk', 'undo', edited.id, ...reason)
    expect(refused).toMatchObject({ exit: 2 })
    expect(refused.err).toContain('undo would act on 2 letters (2 parked): add --yes to confirm')
    expect((await run('bulk', 'undo', edited.id, '--yes')).err).toContain('undo needs')
    expect(await amounts()).toEqual([0, 0])
    const done = await run('bulk', 'undo', edited.id, ...reason, '--yes')
    expect(done).toMatchObject({ exit: 0, err: '' })
    expect(done.out).toContain('undo 2 letters (2 parked)')
    expect(done.out).toContain('/amount')
    expect(done.out).toContain('undo finished: 2 succeeded')
    expectToFit(done.out)
    expect(await amounts()).toEqual([1, 2])
    const again = await run('bulk', 'undo', edited.id, ...reason, '--yes')
    expect(again).toMatchObject({ exit: 2 })
    expect(again.err).toContain('its edit was undone already')
    const { id } = await plan('archive', '--all')
    expect((await run('bulk', 'undo', id, ...reason, '--yes')).err).toContain(
      `bulk action ${id} is archive: only an edit can be undone`,
    )
    expect((await run('bulk', 'undo', 'ffff', ...reason)).err).toContain('ACTION_NOT_FOUND')
  })

  it('undoes an edit in part, prints JSON, and exits with 0', async () => {
    const { run, edited, amounts, ids } = await anEditedStore()
    expect(await run('archive', ids[0]!)).toMatchObject({ exit: 0 })
    const { out, exit } = await run('bulk', 'undo', edited.id, '--reason', 'x', '--yes', '--json')
    expect(exit).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ action: 'undo', progress: { succeeded: 1 } })
    expect(await amounts()).toEqual([0, 2])
  })

  it('plans an undo that needs approval, and obeys the rules of the configuration', async () => {
    const { run, edited, amounts } = await anEditedStore()
    const config = join(folder, 'approval.yaml')
    writeFileSync(config, 'approval:\n  above: 1\n')
    const args = ['undo', edited.id, '--reason', 'x', '--yes', '--config', config]
    const planned = await run('bulk', ...args)
    expect(planned).toMatchObject({ exit: 0 })
    expect(planned.out).toContain('another person has to approve it first')
    expect(await amounts()).toEqual([0, 0])
  })

  it.each(['archive', 'restore', 'retry'])(
    'refuses %s by filter above the limit of approval, as the API does',
    async (command) => {
      const { run } = await aStore()
      if (command === 'restore') await run('archive', '--queue', 'orders', '--yes')
      const config = join(folder, 'approval.yaml')
      writeFileSync(config, 'approval:\n  above: 1\n')
      const args = [command, '--queue', 'orders', '--yes', '--config', config]
      const { err, exit } = await run(...args)
      expect(err).toContain('APPROVAL')
      expect(err).toContain('has to approve it')
      expect(exit).not.toBe(0)
    },
  )

  it('leaves letters out whose groups are not fixed, if the configuration says so', async () => {
    const { run } = await aStore()
    const config = join(folder, 'fix.yaml')
    writeFileSync(config, 'requireFix: true\napp:\n  version: 1.4.0\n')
    for (const command of [
      ['bulk', 'plan', 'retry'],
      ['retry', '--yes'],
    ]) {
      const { err, exit } = await run(...command, '--queue', 'orders', '--config', config)
      expect({ err, exit }).toMatchObject({
        err: expect.stringContaining('3: its group is not resolved in a version yet') as string,
        exit: 2,
      })
    }
    expect((await run('retry', '--queue', 'orders', '--yes')).exit).toBe(0)
  })

  it('pauses on a signal and prints how to resume', async () => {
    const { url, run, plan } = await aStore(50)
    const { id } = await plan('archive', '--queue', 'orders', '--rate', '1')
    const child = spawn(process.execPath, [main, 'bulk', 'run', id, '--store', url], {
      env: plainEnv,
    })
    let err = ''
    child.stderr.setEncoding('utf8').on('data', (part: string) => (err += part))
    const progress = async (): Promise<number> =>
      (JSON.parse((await run('bulk', 'show', id, '--json')).out) as BulkAction).progress.succeeded
    await expect.poll(progress).toBeGreaterThan(0)
    child.kill('SIGINT')
    const [exit] = (await once(child, 'close')) as [number]
    expect(err).toContain(`Continue with: redrive bulk resume ${id}`)
    expect(exit).toBe(130)
    const action = JSON.parse((await run('bulk', 'show', id, '--json')).out) as BulkAction
    expect(action.state).toBe('paused')
    expect(action.progress.pending).toBeGreaterThan(0)
  })
})
