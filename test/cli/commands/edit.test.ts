import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { encodePayload } from '../../../src/letter/payload.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, redrive } from '../run-cli.ts'

const folder = aFolder()

async function aStore() {
  const payload = { ...encodePayload('{"amount":5}', 'application/json'), version: 1 }
  const letter = aLetter({ state: 'parked', payload, queue: 'orders' })
  const url = await aStoreFile(folder, [letter])
  const run = (...args: string[]) => redrive([...args, '--store', url])
  const show = async (): Promise<DeadLetter> =>
    JSON.parse((await run('show', letter.id, '--json')).out) as DeadLetter
  return { id: letter.id, run, show }
}

function aFile(text: string): string {
  const file = join(folder, 'payload.json')
  writeFileSync(file, text)
  return file
}

describe('redrive edit', () => {
  it('shows what changes, and saves it with the reason', async () => {
    const { id, run, show } = await aStore()
    const file = aFile('{"amount":7}')
    const { out, exit } = await run('edit', id, '--file', file, '--reason', 'wrong sum', '--yes')
    expect({ out, exit }).toEqual({ out: `/amount\n- 5\n+ 7\n${id}  edited\n`, exit: 0 })
    expect((await show()).history.at(-1)).toMatchObject({ action: 'edit', note: 'wrong sum' })
    expect((await run('undo', id)).out).toBe(`${id}  edit undone\n`)
    expect((await run('show', id)).out).toContain('"amount": 5')
  })

  it('changes nothing without a difference, a reason, a confirmation or JSON', async () => {
    const { id, run, show } = await aStore()
    const same = await run('edit', id, '--file', aFile('{ "amount": 5 }'))
    expect(same.out).toBe('Nothing was changed.\n')
    const file = aFile('{"amount":7}')
    expect((await run('edit', id, '--file', file)).err).toContain('--reason')
    expect((await run('edit', id, '--file', file, '--reason', 'x')).err).toContain('--yes')
    const broken = await run('edit', id, '--file', aFile('{'), '--reason', 'x', '--yes')
    expect(broken.err).toContain('not JSON')
    expect((await run('edit', id)).err).toContain('EDITOR')
    expect((await show()).version).toBe(1)
  })
})

describe('redrive edit with rules in the configuration', () => {
  it.each([
    ['payloadSchema', 'payloadSchema:\n  required: [currency]\n', '{"amount":7}'],
    ['redact', 'redact: {}\n', '{"amount":"[redacted]"}'],
  ])('obeys %s', async (rule, text, payload) => {
    const { id, run, show } = await aStore()
    const config = join(folder, `${rule}.yaml`)
    writeFileSync(config, text)
    const args = ['edit', id, '--file', aFile(payload), '--reason', 'x', '--yes']
    expect(await run(...args, '--config', config)).toMatchObject({
      err: expect.stringContaining('INVALID_INPUT') as string,
      exit: 2,
    })
    expect((await show()).version).toBe(1)
    expect((await run(...args)).exit).toBe(0)
  })
})

describe('other actions on letters', () => {
  it('adds a note', async () => {
    const { id, run, show } = await aStore()
    expect((await run('note', id, 'asked the customer', '--by', 'ada')).out).toBe(`${id}  noted\n`)
    expect((await show()).history.at(-1)).toMatchObject({
      action: 'note',
      actor: 'ada',
      note: 'asked the customer',
    })
  })

  it('removes letters of a filter only with a reason', async () => {
    const { run } = await aStore()
    expect((await run('remove', '--queue', 'orders', '--yes')).err).toContain('reason')
    const done = await run('remove', '--queue', 'orders', '--yes', '--reason', 'a test')
    expect(done.out).toBe('1 letter removed.\n')
    expect((await run('list')).out).toBe('No letters.\n')
  })

  it('pauses and resumes a queue', async () => {
    const { run } = await aStore()
    expect((await run('queue', 'pause', 'orders', '--reason', 'a migration')).exit).toBe(0)
    expect((await run('queue', 'paused')).out).toContain('a migration')
    expect((await run('queue', 'resume', 'orders')).out).toBe('orders runs again.\n')
    expect((await run('queue', 'paused')).out).toBe('No queue is paused.\n')
  })

  it('tests another retry limit on stored letters', async () => {
    const { run } = await aStore()
    expect((await run('backtest')).err).toContain('--max-retries or --backoff')
    const { out, exit } = await run('backtest', '--backoff', 'exponential:1000')
    expect(exit).toBe(0)
    expect(out).toContain('1 letter read')
  })
})
