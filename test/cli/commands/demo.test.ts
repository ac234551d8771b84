import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { runSync, spawn } from '../../processes.ts'
import { aFolder, aStoreFile, main, plainEnv, redrive } from '../run-cli.ts'

const folder = aFolder()

describe('demo', () => {
  it(
    'prints the moves of letters and the number stored, and continues with them',
    { timeout: 90_000 },
    async () => {
      const url = `sqlite:${join(folder, 'sub', 'demo.db')}`
      const first = await redrive(['demo', '--seconds', '3', '--store', url])
      expect({ err: first.err, exit: first.exit }).toEqual({ err: '', exit: 0 })
      const lines = first.out.split('\n')
      expect(lines[0]).toContain('retries take seconds here')
      for (const queue of ['summarise-ticket', 'render-invoice', 'sync-customer', 'refund'])
        expect(lines).toContainEqual(
          expect.stringMatching(new RegExp(`^\\d\\d:\\d\\d:\\d\\d captured +${queue} `)),
        )
      expect(first.out).toContain('over the limit: a person decides')
      expect(first.out).toContain(`npx redrive list --store ${url}`)
      const count = Number(/^(\d+) letters? in /m.exec(first.out)?.[1])
      const second = await redrive(['demo', '--seconds', '1', '--json', '--store', url])
      expect(second.exit).toBe(0)
      for (const line of second.out.trimEnd().split('\n'))
        expect(JSON.parse(line)).toHaveProperty('event')
      const { out } = await redrive(['stats', '--json', '--store', url])
      expect(
        (JSON.parse(out) as { lifetime: { captured: number } }).lifetime.captured,
      ).toBeGreaterThan(count)
    },
  )

  it('stops gracefully when interrupted', async () => {
    const url = `sqlite:${join(folder, 'you&me.db')}`
    const child = spawn(process.execPath, [main, 'demo', '--store', url], { env: plainEnv })
    child.stdout.once('data', () => child.kill('SIGINT'))
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
    const out = await text(child.stdout)
    expect(out).toContain('View them:')
    const [, given] = /npx redrive list --store (.+)/.exec(out) ?? []
    expect(runSync('sh', ['-c', `printf %s ${given}`])).toBe(url)
    expect(await exited).toBe(130)
  })

  it('rejects a store with letters of other queues', async () => {
    const url = await aStoreFile(folder, [aLetter({ queue: 'payroll' })])
    const { err, exit } = await redrive(['demo', '--seconds', '1', '--store', url])
    expect(err).toMatch(
      /^INVALID_INPUT: .*contains letters of queue payroll, which is not a queue of the demo/,
    )
    expect(exit).toBe(2)
    expect((await redrive(['list', '--store', url])).out).toContain('payroll')
  })

  it('rejects invalid --seconds', async () => {
    expect(await redrive(['demo', '--seconds', 'soon'])).toMatchObject({ exit: 2 })
  })
})
