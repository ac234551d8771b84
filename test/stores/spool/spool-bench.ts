import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { RedriveError } from '../../../src/errors.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import type { Capacity, Store } from '../../../src/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import type { SpoolEvent } from '../../../src/stores/spool/backlog.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import { addSpool, type SpooledStore, type SpoolOptions } from '../../../src/stores/spool/spool.ts'
import { fakeClock, type FakeClock } from '../../../src/testing/index.ts'
import { aFolder as createFolder } from '../../folders.ts'

/** A folder that is removed at the end of the scope. */
export async function aFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = createFolder('redrive-spool')
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

/** `reply-lost`: the letters are stored, and the call fails as if the store were unreachable. */
export type Mode = 'ok' | 'unreachable' | 'hanging' | 'reply-lost'

/** How the store behaves, and which letters were added. */
export interface Behaviour {
  mode: Mode
  /** Ids of added letters, in the order of the calls. */
  addedIds: string[]
  /** Replaces the `add` of the store. */
  instead?: Store['add']
}

function faultyStore(store: Store, behaviour: Behaviour): Store {
  return passThrough(store, {
    add: async (letters: readonly DeadLetter[], capacity?: Capacity) => {
      const { mode, addedIds, instead } = behaviour
      if (instead) return instead(letters, capacity)
      if (mode === 'hanging') return new Promise<never>(() => {})
      if (mode !== 'unreachable') addedIds.push(...letters.map(({ id }) => id))
      const results = mode === 'unreachable' ? [] : await store.add(letters, capacity)
      if (mode !== 'ok') throw new RedriveError('STORE_UNAVAILABLE', 'it is gone')
      return results
    },
    close: async () => {},
  })
}

export interface SpoolBench extends AsyncDisposable {
  store: Store
  behaviour: Behaviour
  spooled: SpooledStore
  clock: FakeClock
  events: SpoolEvent[]
  eventsOf: <T extends SpoolEvent['type']>(type: T) => Extract<SpoolEvent, { type: T }>[]
  /** Lets time pass until an event of this type is emitted, and returns it. */
  until: <T extends SpoolEvent['type']>(type: T) => Promise<Extract<SpoolEvent, { type: T }>>
  /** Closes the spool and opens another one on the same folder and store. */
  reopen: (options?: Partial<SpoolOptions>) => Promise<SpooledStore>
}

/** A spool in front of a memory store, both with a fake clock. */
export async function aSpool(options: SpoolOptions = {}, inner?: Store): Promise<SpoolBench> {
  const clock = fakeClock()
  const behaviour: Behaviour = { mode: 'ok', addedIds: [] }
  const store = faultyStore(inner ?? memoryStore({ clock }), behaviour)
  const events: SpoolEvent[] = []
  const open = async (others: Partial<SpoolOptions> = {}): Promise<SpooledStore> => {
    const emit = (event: SpoolEvent): unknown => events.push(event)
    const opened = addSpool(store, { clock, emit, ...options, ...others })
    await opened.open()
    return opened
  }
  const eventsOf = <T extends SpoolEvent['type']>(type: T): Extract<SpoolEvent, { type: T }>[] =>
    events.filter((event): event is Extract<SpoolEvent, { type: T }> => event.type === type)
  const bench: SpoolBench = {
    store,
    behaviour,
    spooled: await open(),
    clock,
    events,
    eventsOf,
    until: async (type) => {
      const before = eventsOf(type).length
      for (;;) {
        const event = eventsOf(type)[before]
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
