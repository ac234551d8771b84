import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { atDepth } from '../../depth.ts'
import { runSync } from '../../processes.ts'
import { aFolder, aSpool, type Mode } from './spool-bench.ts'

type Step =
  | { kind: 'add'; lanes: (string | undefined)[] }
  | { kind: 'turn'; mode: Mode }
  | { kind: 'wait'; ms: number }
  | { kind: 'restart' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('add' as const),
      lanes: fc.array(fc.constantFrom('a', 'b', undefined), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant('turn' as const),
      mode: fc.constantFrom<Mode>('ok', 'unreachable', 'hanging', 'reply-lost'),
    }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 20_000 }) }),
    fc.record({ kind: fc.constant('restart' as const) }),
  ),
  { maxLength: 20 },
)

it('acknowledged letters reach the store in the order of their lane after any sequence of faults', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      await using folder = await aFolder()
      await using bench = await aSpool({ path: folder.path })
      const acknowledged: DeadLetter[] = []
      for (const step of steps) {
        if (step.kind === 'turn') bench.behaviour.mode = step.mode
        else if (step.kind === 'wait') await bench.clock.advance(step.ms)
        else if (step.kind === 'restart') await bench.reopen()
        else {
          const letters = step.lanes.map((lane) => aLetter(lane === undefined ? {} : { lane }))
          const adding = bench.spooled.add(letters)
          // A hanging call times out after a while.
          if (bench.behaviour.mode === 'hanging') await bench.clock.advance(6000)
          await adding
          acknowledged.push(...letters)
        }
      }
      bench.behaviour.mode = 'ok'
      while ((await bench.spooled.spool()).letters > 0) await bench.clock.advance(5000)
      const ids = acknowledged.map(({ id }) => id)
      expect(await bench.store.get(ids)).toEqual(acknowledged)
      const came = [...new Set(bench.behaviour.addedIds)]
      for (const lane of ['a', 'b']) {
        const inLane = acknowledged.filter((letter) => letter.lane === lane).map(({ id }) => id)
        expect(came.filter((id) => inLane.includes(id))).toEqual(inLane)
      }
    }),
    { numRuns: atDepth(100, 300) },
  )
}, 120_000)

it('a spool rejects letters on a nearly full disk, and accepts them once there is room', async ({
  skip,
}) => {
  await using folder = await aFolder()
  try {
    const options = ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder.path]
    runSync('mount', options, { stdio: 'ignore' })
  } catch {
    skip('a tmpfs can only be mounted by root')
  }
  try {
    await using bench = await aSpool({ path: join(folder.path, 'spool') })
    bench.behaviour.mode = 'unreachable'
    const ballast = join(folder.path, 'ballast')
    const [first, second, third] = [aLetter(), aLetter(), aLetter()]
    await bench.spooled.add([first])
    writeFileSync(ballast, new Uint8Array(960_000))
    await expect(bench.spooled.add([second])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('nearly full') as string,
    })
    await rm(ballast)
    await bench.spooled.add([third])
    bench.behaviour.mode = 'ok'
    await bench.until('drained')
    expect(bench.behaviour.addedIds).toEqual([first.id, third.id])
  } finally {
    runSync('umount', [folder.path])
  }
})
