import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { formatSummary } from '../../../src/cli/commands/copy.ts'
import { nameOf } from '../../../src/cli/open.ts'
import { systemClock } from '../../../src/clock/clock.ts'
import { spoolPathOf } from '../../../src/connect/store.ts'
import type { CopyReport } from '../../../src/transfer/copy/copy.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { DiskBacklog } from '../../../src/stores/spool/disk-backlog.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { mixedLetters } from '../../../src/testing/store/mixed.ts'
import { spawn } from '../../processes.ts'
import {
  aFolder,
  aStoreFile,
  main,
  expectEscaped,
  expectToFit,
  hostileText,
  plainEnv,
  redrive,
} from '../run-cli.ts'

const folder = aFolder()
const newStore = (): string => `sqlite:${join(folder, `${systemClock.id()}.db`)}`

describe('redrive copy', { timeout: 30_000 }, () => {
  it('copies a store, prints a summary, and verifies the copy', async () => {
    const from = await aStoreFile(folder, mixedLetters())
    const to = newStore()
    const copied = await redrive(['copy', from, to])
    // Progress is for terminals.
    expect(copied).toMatchObject({ exit: 0, err: '' })
    expect(copied.out).toContain('72 letters copied in this run.')
    expect(copied.out).toMatch(/^archived +12$/m)
    expect(copied.out).toContain('Verified: 72 letters, 0 records and the totals are the same.')
    expectEscaped(copied.out)
    const again = await redrive(['copy', from, to, '--json'])
    expect(again).toMatchObject({ exit: 0, err: '' })
    expect(JSON.parse(again.out)).toMatchObject({ ok: true, copied: 0, verdict: { letters: 72 } })
    expect((await redrive(['copy', from, to, '--verify-only'])).exit).toBe(0)
  })

  it('exits with 1 and prints the differences', async () => {
    const letter = aLetter()
    const [from, to] = [await aStoreFile(folder, [letter]), await aStoreFile(folder, [])]
    const { out, exit } = await redrive(['copy', from, to, '--verify-only'])
    expect(exit).toBe(1)
    expect(out).toContain(`letter ${letter.id}: missing in the target`)
  })

  it.each([
    ['checks in often', 0, 5000],
    ['checks in every ten minutes', 300_000, 600_000],
  ])('rejects the copy while a worker runs that %s', async (_, agoMs, sweepMs) => {
    const from = await aStoreFile(folder, [aLetter()])
    const store = sqliteStore({ path: from.slice('sqlite:'.length) })
    await store.open()
    const seenAt = toTimestamp(systemClock.now() - agoMs)
    await store.records.put('worker', 'busy', { queues: ['orders'], seenAt, sweepMs })
    await store.close()
    const to = newStore()
    const { err, exit } = await redrive(['copy', from, to])
    expect(exit).toBe(2)
    expect(err).toContain('busy')
    expect(err).toContain('stop them')
    expect((await redrive(['list', '--store', to, '--json'])).out).toBe('')
  })

  it('rejects the copy while letters wait in the spool of a store', async () => {
    const from = await aStoreFile(folder, [aLetter()])
    const path = spoolPathOf(from)
    const spool = new DiskBacklog(path, 2 ** 20, systemClock, () => {})
    await spool.open()
    await spool.append([aLetter()])
    await spool.close()
    const to = newStore()
    const { out, err, exit } = await redrive(['copy', from, to])
    expect({ out, exit }).toEqual({ out: '', exit: 2 })
    expect(err).toContain(`wait in its spool (${path})`)
  })

  it.each([
    ['a missing source', 8, () => [newStore(), newStore()]],
    ['a store as its own target', 2, async () => [await aStoreFile(folder, []), '']],
    [
      'a target with letters',
      2,
      async () => [await aStoreFile(folder, []), await aStoreFile(folder, [aLetter()])],
    ],
    ['a store in memory', 2, async () => [await aStoreFile(folder, []), 'memory:']],
  ])('rejects %s', async (_, code, stores) => {
    const [from, to] = (await stores()) as [string, string]
    const { exit, out } = await redrive(['copy', from, to || from])
    expect(exit).toBe(code)
    expect(out).toBe('')
  })

  it('creates no target when the source is missing or with --verify-only', async () => {
    const [from, to] = [newStore(), newStore()]
    await redrive(['copy', from, to])
    await redrive(['copy', await aStoreFile(folder, []), to, '--verify-only'])
    expect(existsSync(to.slice('sqlite:'.length))).toBe(false)
  })

  it('stops on Ctrl-C, prints how to continue, and continues', async () => {
    const letters = Array.from({ length: 10_000 }, () => aLetter())
    const from = await aStoreFile(folder, letters)
    const to = newStore()
    const child = spawn(process.execPath, [main, 'copy', from, to], { env: plainEnv })
    const out = text(child.stdout)
    const hasLetters = async (): Promise<boolean> => {
      if (!existsSync(to.slice('sqlite:'.length))) return false
      const { out: list, exit: code } = await redrive(['list', '--store', to, '--json'])
      return code === 0 && list !== ''
    }
    await expect.poll(hasLetters).toBe(true)
    child.kill('SIGINT')
    const [exit] = await once(child, 'close')
    expect(exit).toBe(130)
    expect(await out).toContain('Run the same command again')
    const { out: rest, exit: end } = await redrive(['copy', from, to, '--json'])
    const { copied, ok } = JSON.parse(rest) as CopyReport
    expect({ ok, end }).toEqual({ ok: true, end: 0 })
    expect(copied).toBeLessThan(10_000)
  })
})

describe('formatSummary', () => {
  const names = { from: `sqlite:/a/${'long/'.repeat(30)}x.db`, to: 'sqlite:/b' }

  it('fits 80 columns, and escapes control characters in letters', () => {
    const report: CopyReport = {
      ok: false,
      copied: 3,
      verdict: {
        letters: 2,
        records: 1,
        states: { pending: 2_000_000 },
        hash: { from: 'a', to: 'b' },
        differences: {
          first: [{ kind: 'count', name: `queue ${hostileText}`, why: 'x'.repeat(200) }],
          count: 21,
        },
        damaged: { first: [{ id: 'a', why: hostileText }], count: 2 },
      },
    }
    const lines = formatSummary(names, report, 80)
    expectToFit(lines.join('\n'))
    expect(lines.join('\n')).toContain('… and 20 more')
    expect(lines.join('\n')).toContain('2 letters damaged in the source')
  })

  it('prints how to continue after a stop', () => {
    expect(formatSummary(names, { ok: false, copied: 5 }, 80).at(-1)).toContain('again')
  })
})

describe('nameOf', () => {
  it.each([
    ['postgres://ada:secret@db:5432/letters?schema=dlq', 'postgres://db:5432/letters?schema=dlq'],
    ['redis://:secret@cache/1', 'redis://cache/1'],
    ['https://search/x?api_key=secret&prefix=p', 'https://search/x?prefix=p'],
    ['sqlite:/a/../b.db', 'sqlite:/b.db'],
    ['sqlite:///b.db', 'sqlite:/b.db'],
  ])('removes the secrets from %s', (url, name) => {
    expect(nameOf(url)).toBe(name)
  })
})
