import { systemClock } from '../../../src/clock/clock.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { drain } from '../drain.ts'

/*
 * Another process on the same schema: `child.ts TASK URL SCHEMA NAME`. What it did goes to stdout,
 * one line each. It never calls process.exit, so that a store which keeps the process alive shows
 * as a child that does not end.
 */
const [task, url, schema, name = 'child'] = process.argv.slice(2) as [
  string,
  string,
  string,
  string?,
]
const store = postgresStore({ url, schema, poolSize: 4 })
await store.open()

const tasks: Record<string, () => Promise<void>> = {
  /** Opens, watches, adds one letter, and leaves the store as it is. */
  leave: async () => {
    store.watch(() => {})
    await store.add([aLetter({ id: systemClock.id() })])
  },
  /** Captures one key again and again, some at a time. */
  storm: async () => {
    const lanes = Array.from({ length: 25 }, async () => {
      for (let n = 0; n < 5; n++) {
        const [result] = await store.add([aLetter({ id: systemClock.id(), dedupeKey: 'same' })])
        console.log(result!.kind)
      }
    })
    await Promise.all(lanes)
    await store.close()
  },
  drain: () => drain(store, name),
}

await tasks[task]!()
