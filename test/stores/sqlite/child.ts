import { systemClock } from '../../../src/clock/clock.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { drain } from '../drain.ts'

/*
 * Another process on the same file: `child.ts TASK PATH NAME`. What it did goes to stdout, one id a
 * line. It never calls process.exit, so that a store which keeps the process alive shows as a child
 * that does not end.
 */
const [task, path, name = 'child'] = process.argv.slice(2) as [string, string, string?]
const store = sqliteStore({ path, busyTimeoutMs: 20_000 })
await store.open()

const tasks: Record<string, () => Promise<void>> = {
  /** Opens and closes. */
  open: () => store.close(),
  /** Opens, adds one letter, and leaves the store as it is. */
  leave: async () => void (await store.add([aLetter({ id: systemClock.id() })])),
  /** Adds letters one by one, some at a time. */
  add: async () => {
    const lanes = Array.from({ length: 10 }, async () => {
      for (let n = 0; n < 20; n++) {
        const letter = aLetter({ id: systemClock.id(), queue: name, tags: [name] })
        await store.add([letter])
        console.log(letter.id)
      }
    })
    await Promise.all(lanes)
    await store.close()
  },
  drain: () => drain(store, name),
}

await tasks[task]!()
