import { describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { aFolder, expectToFit, redrive } from '../run-cli.ts'

const folder = aFolder()
const [one, two] = [1, 2].map((fill) => Buffer.alloc(32, fill).toString('base64')) as [
  string,
  string,
]

describe('keys', () => {
  it('counts letters by key and encrypts them with the current one', async () => {
    const file = `sqlite:${folder}/letters.db`
    const encryption = { keys: { one }, current: 'one' }
    const dlq = await DeadLetterQueue.open(file, { encryption })
    const { id } = await dlq.enqueue({ type: 'pay', payload: { n: 1 } }, new Error('no'))
    await dlq.close()
    const env = {
      REDRIVE_ENCRYPTION__CURRENT: 'two',
      REDRIVE_ENCRYPTION__KEYS: '{ one: { env: KEY_ONE }, two: { env: KEY_TWO } }',
      KEY_ONE: one,
      KEY_TWO: two,
    }
    const run = (...args: string[]) =>
      redrive(['keys', ...args, '--store', file], { env, cwd: folder })
    const before = await run('status')
    expect(before.out).toContain('two (current): 0 letters')
    expect(before.out).toContain('one: 1 letters')
    expectToFit(before.out)
    const rotated = await run('rotate', '--json')
    expect({ ...rotated, out: JSON.parse(rotated.out) as unknown }).toEqual({
      out: { current: 'two', checked: 1, rotated: 1, skipped: 0, failed: 0 },
      err: '',
      exit: 0,
    })
    expect((await run('rotate')).out).toContain('1 checked, 0 encrypted')
    const after = await DeadLetterQueue.open(file, {
      encryption: { keys: { two }, current: 'two' },
    })
    expect(JSON.parse(Buffer.from((await after.get(id))!.payload.bytes).toString())).toEqual({
      n: 1,
    })
    await after.close()
  })

  it('needs keys', async () => {
    const file = `sqlite:${folder}/plain.db`
    await (await DeadLetterQueue.open(file)).close()
    const { exit, err } = await redrive(['keys', 'status', '--store', file], { cwd: folder })
    expect({ exit, err }).toEqual({
      exit: 2,
      err: expect.stringContaining('set the option encryption') as string,
    })
  })
})
