import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RedriveError } from '../../../src/errors.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import type { Capacity, Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import type { SpoolEvent } from '../../../src/stores/spool/backlog.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { addSpool, type SpooledStore, type SpoolOptions } from '../../../src/stores/spool/spool.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'

/** A folder of its own, gone at the end of the scope. */
export async function aFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'redrive-spool-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Puts a folder in place of a file, so that it cannot be opened. Returns how to undo it. */
export function block(file: string): () => void {
  renameSync(file, `${file}-away`)
  mkdirSync(file)
  return () => {
    rmdirSync(file)
    renameSync(`${file}-away`, file)
  }
}

/** `lost`: it keeps the letters, and says that it could not be reached. */
export type Mood = 'well' | 'away' | 'hung' | 'lost'

/** How the store behaves, and what was asked of it. */
export interface Behaviour {
  mood: Mood
  /** Ids in the order in which they were given to it, as often as they were. */
  given: string[]
  /** In place of its own `add`. */
  instead?: Store['add']
}

function moodyStore(store: Store, behaviour: Behaviour): Store {
  return passThrough(store, {
    add: async (letters: readonly DeadLetter[], capacity?: Capacity) => {
      const { mood, given, instead } = behaviour
      if (instead) return instead(letters, capacity)
      if (mood === 'hung') return new Promise<never>(() => {})
      if (mood !== 'away') given.push(...letters.map(({ id }) => id))
      const results = mood === 'away' ? [] : await store.add(letters, capacity)
      if (mood !== 'well') throw new RedriveError('STORE_UNAVAILABLE', 'it is gone')
      return results
    },
    close: async () => {},
  })
}

export interface SpoolBench extends AsyncDisposable {
  store: Store
  its: Behaviour
  spooled: SpooledStore
  clock: FakeClock
  events: SpoolEvent[]
  heard: <T extends SpoolEvent['type']>(type: T) => Extract<SpoolEvent, { type: T }>[]
  /** Lets time pass until an event of this type is heard; answers it. */
  until: <T extends SpoolEvent['type']>(type: T) => Promise<Extract<SpoolEvent, { type: T }>>
  /** Closes it, and opens another on the same folder and store. */
  reopen: (options?: Partial<SpoolOptions>) => Promise<SpooledStore>
}

/** A spool before a memory store, with the time of both in the hands of the test. */
export async function aSpool(options: SpoolOptions = {}, inner?: Store): Promise<SpoolBench> {
  const clock = fakeClock()
  const its: Behaviour = { mood: 'well', given: [] }
  const store = moodyStore(inner ?? memoryStore({ clock }), its)
  const events: SpoolEvent[] = []
  const open = async (others: Partial<SpoolOptions> = {}): Promise<SpooledStore> => {
    const emit = (event: SpoolEvent): unknown => events.push(event)
    const opened = addSpool(store, { clock, emit, ...options, ...others })
    await opened.open()
    return opened
  }
  const heard = <T extends SpoolEvent['type']>(type: T): Extract<SpoolEvent, { type: T }>[] =>
    events.filter((event): event is Extract<SpoolEvent, { type: T }> => event.type === type)
  const bench: SpoolBench = {
    store,
    its,
    spooled: await open(),
    clock,
    events,
    heard,
    until: async (type) => {
      const before = heard(type).length
      for (;;) {
        const event = heard(type)[before]
        if (event) return event
        await clock.advance(1000)
      }
    },
    reopen: async (others) => {
      await bench.spooled.close()
      bench.spooled = await open(others)
      return bench.spooled
    },
    [Symbol.asyncDispose]: () => bench.spooled.close(),
  }
  return bench
}
