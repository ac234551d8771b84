import { writeSync } from 'node:fs'
import { systemClock } from '../../../src/clock/clock.ts'
import { RedriveError } from '../../../src/errors.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { addSpool } from '../../../src/stores/spool/spool.ts'
import { aLetter } from '../../../src/testing/index.ts'

/*
 * A process whose store is unreachable: `child.ts FOLDER`. Eight callers add letters to the spool,
 * one after another, until it is killed. It prints a line for each acknowledged letter: the caller,
 * the number of the letter, and its id.
 */
const unreachable = passThrough(memoryStore(), {
  add: () => Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'gone')),
})
const store = addSpool(unreachable, { path: process.argv[2]! })
await store.open()

await Promise.all(
  Array.from({ length: 8 }, async (_, caller) => {
    for (let number = 0; ; number++) {
      const id = systemClock.id()
      await store.add([aLetter({ id, lane: `${process.pid}/${caller}`, tags: [String(number)] })])
      writeSync(1, `${process.pid}/${caller} ${number} ${id}\n`)
    }
  }),
)
