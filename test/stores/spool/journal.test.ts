import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import type { Backlog, SpoolEvent } from '../../../src/stores/spool/backlog.ts'
import { journal } from '../../../src/stores/spool/journal.ts'
import { recordOf } from '../../../src/stores/spool/record.ts'
import { readSegment, recordsOf } from '../../../src/stores/spool/segment.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import { aFolder } from './spool-bench.ts'

const clock = fakeClock()

vi.mock(import('node:fs/promises'), async (original) => {
  const real = await original()
  return { ...real, readFile: vi.fn(real.readFile) as unknown as typeof real.readFile }
})

async function opened(path: string, events: SpoolEvent[] = []): Promise<Backlog> {
  const tell = (event: SpoolEvent): unknown => events.push(event)
  const backlog = journal({ path, maxBytes: 2 ** 30, clock, tell })
  await backlog.open()
  return backlog
}

/** Everything that waits, settled. */
async function drained(backlog: Backlog): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = []
  for (let head = await backlog.head(); head; head = await backlog.head()) {
    letters.push(...head.map(({ letter }) => letter))
    await backlog.settle(head.length)
  }
  return letters
}

/** The one file of a journal, in a folder of its own. */
async function written(path: string, letters: readonly DeadLetter[]): Promise<string> {
  const backlog = await opened(path)
  await backlog.append(letters)
  await backlog.close()
  return join(
    path,
    readdirSync(path).find((file) => file.endsWith('.journal'))!,
  )
}

/** What stands in a journal of these letters. */
async function bytesOf(letters: readonly DeadLetter[]): Promise<Buffer> {
  await using folder = await aFolder()
  return readFileSync(await written(folder.path, letters))
}

const letters = [
  aLetter(),
  aLetter({
    lane: 'a',
    metadata: JSON.parse('{"__proto__":{"x":1},"lone":"\\ud800"}') as DeadLetter['metadata'],
    payload: {
      bytes: Uint8Array.from({ length: 300 }, (_, at) => at),
      contentType: 'application/octet-stream',
      size: 300,
      version: 1,
    },
  }),
  aLetter({ headers: { a: 'ü' }, state: 'parked' }),
]

describe('a journal', () => {
  it('gives back letters as they were, to whoever opens it next', async () => {
    await using folder = await aFolder()
    await written(folder.path, letters)
    const backlog = await opened(folder.path)
    expect(backlog).toMatchObject({ letters: 3, oldestAt: letters[0]!.deadLetteredAt })
    expect(await drained(backlog)).toEqual(letters)
    expect(backlog.empty).toBe(true)
    await backlog.close()
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('flushes once for all that gathers while a flush is on its way', async () => {
    await using folder = await aFolder()
    const backlog = await opened(folder.path)
    const datasync = await spiedOn('datasync')
    await Promise.all(Array.from({ length: 100 }, () => backlog.append([aLetter()])))
    expect(backlog.letters).toBe(100)
    expect(datasync.mock.calls.length).toBeGreaterThan(0)
    expect(datasync.mock.calls.length).toBeLessThanOrEqual(4)
    await drained(backlog)
    await backlog.close()
  })

  it('is left alone by others while its process holds it', async () => {
    await using folder = await aFolder()
    const first = await opened(folder.path)
    await first.append(letters)
    const second = await opened(folder.path)
    expect(second.empty).toBe(true)
    expect(await second.head()).toBeUndefined()
    await second.append([aLetter()])
    expect(first.letters).toBe(3)
    await second.close()
    await first.close()
    const third = await opened(folder.path)
    expect(third.letters).toBe(4)
    expect((await drained(third)).slice(0, 3)).toEqual(letters)
    await third.close()
  })

  it('is let go of when another in the folder cannot be taken', async () => {
    await using folder = await aFolder()
    await written(folder.path, letters)
    const other = join(folder.path, 'ffffffff-0000-7000-8000-000000000000')
    writeFileSync(`${other}-000001.journal`, await bytesOf([aLetter()]))
    mkdirSync(`${other}.lock`)
    await expect(opened(folder.path)).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
    rmdirSync(`${other}.lock`)
    const backlog = await opened(folder.path)
    expect(backlog.letters).toBe(4)
    await backlog.close()
  })

  it('may have more files than six digits count', async () => {
    await using folder = await aFolder()
    for (const [number, letter] of [999_999, 1_000_000].map(
      (at, n) => [at, letters[n]!] as const,
    )) {
      const owner = '01900000-0000-7000-8000-000000000000'
      writeFileSync(join(folder.path, `${owner}-${number}.journal`), await bytesOf([letter]))
    }
    const backlog = await opened(folder.path)
    expect(await drained(backlog)).toEqual(letters.slice(0, 2))
    await backlog.close()
  })

  it('goes on where it was when it comes back half drained', async () => {
    await using folder = await aFolder()
    await written(folder.path, letters)
    const first = await opened(folder.path)
    await first.head()
    await first.settle(2)
    await first.close()
    const second = await opened(folder.path)
    expect(second.letters).toBe(1)
    expect(await drained(second)).toEqual([letters[2]])
    await second.close()
  })

  it('gives all again when it no longer knows how far it was', async () => {
    await using folder = await aFolder()
    const file = await written(folder.path, letters)
    const first = await opened(folder.path)
    await first.head()
    await first.settle(2)
    await first.close()
    writeFileSync(file.replace(/-\d+\.journal$/, '.drained'), 'not twelve!!')
    const second = await opened(folder.path)
    expect(await drained(second)).toEqual(letters)
    await second.close()
  })

  it('is written in files of a few megabytes', async () => {
    await using folder = await aFolder()
    const bytes = new Uint8Array(2 ** 20)
    const large = Array.from({ length: 7 }, () =>
      aLetter({ payload: { ...letters[0]!.payload, bytes, size: bytes.length } }),
    )
    const backlog = await opened(folder.path)
    for (const letter of large) await backlog.append([letter])
    expect(readdirSync(folder.path).filter((file) => file.endsWith('.journal'))).toHaveLength(3)
    expect((await drained(backlog)).map(({ id }) => id)).toEqual(large.map(({ id }) => id))
    await backlog.close()
    expect(readdirSync(folder.path)).toEqual([])
  })
})

describe('damage', () => {
  /** Journals that other processes left behind, and what is found in them. */
  async function found(path: string, journals: readonly Uint8Array[]) {
    for (const bytes of journals) writeFileSync(join(path, `${clock.id()}-000001.journal`), bytes)
    const events: SpoolEvent[] = []
    const backlog = await opened(path, events)
    const letters = await drained(backlog)
    const aside = await backlog.aside()
    await backlog.close()
    return { letters, aside, events }
  }

  it('an end cut at any byte leaves all that is before it', async () => {
    await using folder = await aFolder()
    const whole = await bytesOf(letters)
    const last = whole.length - recordsOf([letters[2]!]).length
    const file = join(folder.path, 'cut')
    for (let length = last + 1; length < whole.length; length++) {
      writeFileSync(file, whole.subarray(0, length))
      const { entries, aside } = await readSegment(file, 0)
      expect(entries.map(({ letter }) => letter)).toEqual(letters.slice(0, 2))
      expect(aside).toMatchObject([{ what: 'torn', start: last }])
    }
  })

  it('an end that was cut is set aside as it is', async () => {
    await using folder = await aFolder()
    const whole = await bytesOf(letters)
    const last = whole.length - recordsOf([letters[2]!]).length
    const cuts = Array.from({ length: whole.length - last - 1 }, (_, at) => last + 1 + at).filter(
      (length, at) => at < 16 || length % 31 === 0 || length === whole.length - 1,
    )
    const {
      letters: came,
      aside,
      events,
    } = await found(
      folder.path,
      cuts.map((length) => whole.subarray(0, length)),
    )
    expect(came).toEqual(cuts.flatMap(() => letters.slice(0, 2)))
    expect(aside).toEqual({ torn: cuts.length, damaged: 0, refused: 0, unreadable: 0 })
    expect(events).toHaveLength(cuts.length)
    for (const [at, event] of events.entries()) {
      const file = event.type === 'set-aside' ? event.file : ''
      expect(readFileSync(file)).toEqual(whole.subarray(last, cuts[at]))
    }
    expect(readdirSync(folder.path)).toHaveLength(cuts.length)
  })

  it('a byte changed anywhere costs that letter at the most, and is set aside', async () => {
    await using folder = await aFolder()
    const whole = await bytesOf(letters)
    const header = whole.length - recordsOf(letters).length
    const ends = letters.map((_, at) => header + recordsOf(letters.slice(0, at + 1)).length)
    const hits = [...whole.keys()].filter((at) => at < header || at % 53 === 0)
    const { letters: came, aside } = await found(
      folder.path,
      hits.map((at) => whole.with(at, whole[at]! ^ 0x40)),
    )
    const kept = hits.map((at) => {
      const hit = at < header ? -1 : ends.findIndex((end) => at < end)
      return letters.filter((_, index) => index !== hit)
    })
    expect(came).toEqual(kept.flat())
    expect(aside.torn + aside.damaged).toBe(hits.length)
  })

  it('a whole record that is no letter is set aside as it is', async () => {
    await using folder = await aFolder()
    const file = await written(folder.path, letters)
    appendFileSync(file, recordOf(Buffer.from('{"id":"x"}')))
    const events: SpoolEvent[] = []
    const backlog = await opened(folder.path, events)
    expect(await drained(backlog)).toEqual(letters)
    expect(events).toMatchObject([{ type: 'set-aside', what: 'refused' }])
    await backlog.close()
  })

  it('a journal of another version stays as it is, and does not stop the others', async () => {
    await using folder = await aFolder()
    const file = await written(folder.path, letters)
    const foreign = Buffer.concat([recordOf(Buffer.from('{"spool":2}')), recordsOf(letters)])
    writeFileSync(file, foreign)
    const events: SpoolEvent[] = []
    const backlog = await opened(folder.path, events)
    await backlog.append([letters[0]!])
    expect(await drained(backlog)).toEqual([letters[0]])
    expect(events).toMatchObject([{ type: 'error', error: { code: 'STORE_UNSAFE' } }])
    expect(await backlog.aside()).toMatchObject({ unreadable: 1 })
    await backlog.close()
    expect(readFileSync(file)).toEqual(foreign)
  })
})

describe('a disk that fails', () => {
  it.each(['datasync', 'appendFile'] as const)(
    'in %s: nobody is told that it is kept, it is not kept, and the next file is tried',
    async (call) => {
      await using folder = await aFolder()
      const backlog = await opened(folder.path)
      await backlog.append([letters[0]!])
      const spy = await spiedOn(call)
      spy.mockRejectedValueOnce(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))
      await expect(backlog.append([letters[1]!])).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('EIO') as string,
      })
      await backlog.append([letters[2]!])
      expect(readdirSync(folder.path).filter((file) => file.endsWith('.journal'))).toHaveLength(2)
      await backlog.close()
      const next = await opened(folder.path)
      expect(await drained(next)).toEqual([letters[0], letters[2]])
      await next.close()
    },
  )

  it.each([1, 2])('at flush %i of the first file leaves nothing behind', async (which) => {
    await using folder = await aFolder()
    const backlog = await opened(folder.path)
    const spy = await spiedOn('datasync')
    if (which === 2) spy.mockResolvedValueOnce()
    spy.mockRejectedValueOnce(new Error('ENOSPC'))
    await expect(backlog.append(letters)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(backlog).toMatchObject({ empty: true, letters: 0, bytes: 0 })
    expect(readdirSync(folder.path)).toEqual([])
    await backlog.close()
  })

  it('while the store takes the last letter before: what is kept afterwards waits', async () => {
    await using folder = await aFolder()
    const backlog = await opened(folder.path)
    await backlog.append([letters[0]!])
    await backlog.head()
    const spy = await spiedOn('appendFile')
    const begun = Promise.withResolvers<void>()
    const failing = Promise.withResolvers<void>()
    spy.mockImplementationOnce(() => {
      begun.resolve()
      return failing.promise
    })
    const first = backlog.append([letters[1]!])
    await begun.promise
    const second = backlog.append([letters[2]!])
    const settled = backlog.settle(1)
    failing.reject(new Error('ENOSPC'))
    await expect(first).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await Promise.all([second, settled])
    expect(backlog).toMatchObject({ empty: false, letters: 1 })
    expect(await drained(backlog)).toEqual([letters[2]])
    await backlog.close()
  })

  it('leaves a journal that holds nothing but damage, to be set aside', async () => {
    await using folder = await aFolder()
    const file = await written(folder.path, [letters[0]!])
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.with(200, bytes[200]! ^ 1))
    const backlog = await opened(folder.path)
    const spy = await spiedOn('appendFile')
    spy.mockRejectedValueOnce(new Error('ENOSPC'))
    await expect(backlog.append([letters[1]!])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await drained(backlog)).toEqual([])
    expect(await backlog.aside()).toMatchObject({ damaged: 1 })
    await backlog.close()
  })

  it('since someone removed the file: nothing more is taken for kept', async () => {
    await using folder = await aFolder()
    const backlog = await opened(folder.path)
    await backlog.append([letters[0]!])
    for (const file of readdirSync(folder.path)) rmSync(join(folder.path, file))
    await expect(backlog.append([letters[1]!])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await backlog.close()
  })
})

describe('a file that cannot be read', () => {
  /** A journal of two files, and the first of them. */
  async function inTwo(path: string): Promise<string> {
    const backlog = await opened(path)
    await backlog.append([letters[0]!])
    await backlog.head()
    await backlog.append(letters.slice(1))
    await backlog.close()
    return join(
      path,
      readdirSync(path).find((file) => file.endsWith('-000001.journal'))!,
    )
  }

  it('is tried again in its turn, and told of once', async () => {
    await using folder = await aFolder()
    const restore = spoilt(await inTwo(folder.path))
    const events: SpoolEvent[] = []
    const backlog = await opened(folder.path, events)
    for (let tries = 0; tries < 3; tries++)
      await expect(backlog.head()).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('-000001.journal cannot be read') as string,
      })
    expect(backlog.empty).toBe(false)
    expect(await backlog.aside()).toMatchObject({ unreadable: 1 })
    expect(events).toMatchObject([{ type: 'error', error: { code: 'EMFILE' } }])
    restore()
    expect(await drained(backlog)).toEqual(letters)
    expect(await backlog.aside()).toMatchObject({ unreadable: 0 })
    await backlog.close()
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('stays when it is of no use for long: the others come, and so does it at a later open', async () => {
    await using folder = await aFolder()
    const restore = spoilt(await inTwo(folder.path))
    const first = await opened(folder.path)
    let head: Awaited<ReturnType<Backlog['head']>>
    while (!head) head = await first.head().catch(() => undefined)
    expect(head.map(({ letter }) => letter)).toEqual(letters.slice(1))
    expect(await first.aside()).toMatchObject({ unreadable: 1 })
    await first.settle(1)
    await first.close()
    restore()
    const second = await opened(folder.path)
    expect(await drained(second)).toEqual([letters[0], letters[2]])
    await second.close()
    expect(readdirSync(folder.path)).toEqual([])
  })
})

/** Makes a file one that cannot be read; answers how to end it. */
function spoilt(file: string): () => void {
  const spy = vi.mocked(readFile)
  const real = spy.getMockImplementation()!
  const restore = (): unknown => spy.mockImplementation(real)
  spy.mockImplementation(async (path, ...rest) => {
    if (path === file) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
    return real(path, ...rest)
  })
  onTestFinished(() => void restore())
  return restore
}

/** A spy on what all open files do. */
async function spiedOn(call: 'datasync' | 'appendFile') {
  const file = await open(import.meta.filename)
  const spy = vi.spyOn(Object.getPrototypeOf(file) as typeof file, call)
  await file.close()
  onTestFinished(() => spy.mockRestore())
  return spy
}

type Step =
  | { kind: 'append'; counts: number[] }
  | { kind: 'drain'; upTo: number }
  | { kind: 'crash'; garbage: Uint8Array; forget: boolean }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('append' as const),
      counts: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ kind: fc.constant('drain' as const), upTo: fc.integer({ min: 1, max: 9 }) }),
    fc.record({
      kind: fc.constant('crash' as const),
      garbage: fc.uint8Array({ maxLength: 40 }),
      forget: fc.boolean(),
    }),
  ),
  { maxLength: 14 },
)

describe('whatever happens to a journal', () => {
  it('nothing acknowledged is lost, and the order holds', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (steps) => {
        await using folder = await aFolder()
        let backlog = await opened(folder.path)
        const acknowledged: string[] = []
        const came: string[] = []
        for (const step of steps) {
          if (step.kind === 'append') {
            const batches = step.counts.map((count) =>
              Array.from({ length: count }, () => aLetter()),
            )
            await Promise.all(batches.map((batch) => backlog.append(batch)))
            acknowledged.push(...batches.flat().map(({ id }) => id))
          } else if (step.kind === 'drain') {
            const head = (await backlog.head())?.slice(0, step.upTo) ?? []
            came.push(...head.map(({ letter }) => letter.id))
            await backlog.settle(head.length)
          } else {
            await backlog.close()
            spoil(folder.path, step)
            backlog = await opened(folder.path)
          }
        }
        came.push(...(await drained(backlog)).map(({ id }) => id))
        await backlog.close()
        // What comes twice, since a crash forgot how far it was, comes again in the same order.
        const firsts = [...new Set(came)]
        expect(firsts).toEqual(acknowledged)
        if (!steps.some((step) => step.kind === 'crash' && step.forget))
          expect(came).toEqual(acknowledged)
      }),
      { numRuns: 150 },
    )
  })
})

/** What a crash may leave: the beginning of a record behind the last one, and no word of how far the drain was. */
function spoil(path: string, { garbage, forget }: { garbage: Uint8Array; forget: boolean }): void {
  const files = readdirSync(path).sort()
  const last = files.findLast((file) => file.endsWith('.journal'))
  const torn = recordOf(Buffer.from(garbage)).subarray(0, garbage.length)
  if (last !== undefined) appendFileSync(join(path, last), torn)
  if (forget)
    for (const file of files)
      if (file.endsWith('.drained')) rmSync(join(path, file), { force: true })
}
