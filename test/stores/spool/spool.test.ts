import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { RedriveError } from '../../../src/errors.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { passThrough } from '../../../src/stores/pass-through.ts'
import type { SpoolEvent } from '../../../src/stores/spool/backlog.ts'
import { addSpool, type SpoolOptions } from '../../../src/stores/spool/spool.ts'
import { aLetter, fakeClock } from '../../../src/testing/index.ts'
import {
  checksOf,
  runStoreContract,
  type ClosableBench,
} from '../../contract/run-store-contract.ts'
import { aFolder, aSpool, block } from './spool-bench.ts'
import { waitFor } from '../../wait-for.ts'

const openSpooled = async (): Promise<ClosableBench> => {
  const clock = fakeClock()
  const folder = await aFolder()
  const store = addSpool(memoryStore({ clock }), { path: join(folder.path, 'spool'), clock })
  await store.open()
  return {
    store,
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: async () => {
      await store.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

// The spool takes part in these alone.
runStoreContract('a spooled store', openSpooled, {
  inShort: checksOf('lifecycle', 'add', 'dedupe', 'capacity'),
})

const added = { kind: 'added' }
const idsOf = (letters: readonly DeadLetter[]): string[] => letters.map(({ id }) => id)
const some = (count: number, overrides: Partial<DeadLetter> = {}): DeadLetter[] =>
  Array.from({ length: count }, () => aLetter(overrides))

describe('a spool while the store is unreachable', () => {
  it('holds letters on disk, and writes them to the store in order once it is reachable', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    const { store, behaviour, spooled, clock } = bench
    behaviour.mode = 'unreachable'
    const letters = some(700)
    for (let at = 0; at < letters.length; at += 100)
      expect(await spooled.add(letters.slice(at, at + 100))).toEqual(
        Array.from({ length: 100 }, () => added),
      )
    expect(bench.eventsOf('spooling')).toMatchObject([
      { place: folder.path, error: { code: 'STORE_UNAVAILABLE' } },
    ])
    await clock.advance(60_000)
    expect(behaviour.addedIds).toEqual([])
    behaviour.mode = 'ok'
    expect(await bench.until('drained')).toMatchObject({ count: 700, duplicates: 0 })
    expect(behaviour.addedIds).toEqual(idsOf(letters))
    expect(await store.get(idsOf(letters))).toEqual(letters)
    expect(readdirSync(folder.path)).toEqual([])
    expect(await spooled.spool()).toMatchObject({ letters: 0, bytes: 0, drained: 700 })
    expect(clock.pending()).toBe(0)
  })

  it('retries with growing delays, with one letter at a time', async () => {
    await using bench = await aSpool()
    let attempts = 0
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add(some(10))
    bench.behaviour.instead = async (letters) => {
      attempts += 1
      expect(letters).toHaveLength(1)
      throw new RedriveError('STORE_UNAVAILABLE', 'still gone')
    }
    for (let minute = 0; minute < 10; minute++) await bench.clock.advance(60_000)
    expect(attempts).toBeGreaterThan(15)
    expect(attempts).toBeLessThan(60)
  })

  it('does not store a letter twice whose acknowledgement was lost', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'reply-lost'
    const letters = some(3)
    expect(await bench.spooled.add(letters)).toEqual([added, added, added])
    bench.behaviour.mode = 'ok'
    expect(await bench.until('drained')).toMatchObject({ count: 3, duplicates: 3 })
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 3]]))
  })

  it('treats a store that does not respond in time as unreachable', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path, timeoutMs: 2000 })
    bench.behaviour.mode = 'hanging'
    const adding = bench.spooled.add([aLetter()])
    await bench.clock.advance(1999)
    expect(bench.events).toEqual([])
    await bench.clock.advance(1)
    expect(await adding).toEqual([added])
    bench.behaviour.mode = 'ok'
    await bench.until('drained')
  })

  it.each(['INVALID_INPUT', 'CLOSED', 'STORE_UNSAFE'] as const)(
    'passes on %s, which is not an outage',
    async (code) => {
      await using folder = await aFolder()
      await using bench = await aSpool({ path: folder.path })
      bench.behaviour.instead = () => Promise.reject(new RedriveError(code, 'no'))
      await expect(bench.spooled.add([aLetter()])).rejects.toMatchObject({ code })
      expect(bench.events).toEqual([])
    },
  )

  it('passes other calls to the store', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    const [letter] = some(1)
    await bench.spooled.add([letter!])
    expect(await bench.spooled.get([letter!.id])).toEqual([])
  })
})

/** A spool in front of a store whose open is `behaviour.open`; by default, it is unreachable. */
async function aLateStore(options: SpoolOptions = {}, seed = 1) {
  const clock = fakeClock(0, seed)
  const inner = memoryStore({ clock })
  const behaviour: { open?: () => Promise<void>; opens: number } = { opens: 0 }
  const away = new RedriveError('STORE_UNAVAILABLE', 'nothing listens there')
  const open = (): Promise<void> => {
    behaviour.opens += 1
    return behaviour.open ? behaviour.open() : Promise.reject(away)
  }
  const events: SpoolEvent[] = []
  const late = addSpool(passThrough(inner, { open }), {
    clock,
    emit: (event) => void events.push(event),
    ...options,
  })
  const until = async (happened: () => boolean): Promise<void> => {
    while (!happened()) await clock.advance(1000)
  }
  return {
    late,
    inner,
    behaviour,
    clock,
    events,
    until,
    recover: () => (behaviour.open = () => inner.open()),
  }
}

describe('a store that is unreachable when it is opened', () => {
  it.each(['on disk', 'in memory'])(
    'is opened later, and receives the letters that waited %s',
    async (where) => {
      await using folder = await aFolder()
      const options = where === 'on disk' ? { path: folder.path } : {}
      const { late, inner, clock, events, until, recover } = await aLateStore(options)
      await late.open()
      expect(events).toMatchObject([{ type: 'error', during: 'opening the store' }])
      const letters = some(300, { lane: 'a' })
      for (const letter of letters) expect(await late.add([letter])).toEqual([added])
      await clock.advance(120_000)
      expect(await late.spool()).toMatchObject({ letters: 300, drained: 0 })
      recover()
      await until(() => events.some(({ type }) => type === 'drained'))
      expect(events.at(-1)).toEqual({ type: 'drained', count: 300, duplicates: 0 })
      expect(await inner.get(idsOf(letters))).toEqual(letters)
      expect(
        idsOf((await inner.find({ order: 'oldest', payload: true, limit: 1000 })).items),
      ).toEqual(idsOf(letters))
      expect(await late.health()).toMatchObject({ ok: true, problems: [] })
      expect(await late.add([aLetter()])).toEqual([added])
      expect(clock.pending()).toBe(0)
      await late.close()
    },
  )

  it('is opened later even if no letter waits', async () => {
    const { late, clock, until, recover } = await aLateStore()
    await late.open()
    recover()
    const isOpen = async (): Promise<boolean> => (await late.health()).ok
    while (!(await isOpen())) await clock.advance(1000)
    await until(() => clock.pending() === 0)
    expect(await late.tally('state')).toEqual(new Map())
    await late.close()
  })

  it('is retried with growing delays', async () => {
    const { late, behaviour, clock } = await aLateStore()
    await late.open()
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000)
    expect(behaviour.opens).toBeGreaterThan(15)
    expect(behaviour.opens).toBeLessThan(60)
    await late.close()
  })

  it('reports the reason in health, and rejects all calls but add until it is open', async () => {
    const { late } = await aLateStore()
    await late.open()
    const words = 'the store could not be opened yet, and is tried again: nothing listens there'
    expect(await late.health()).toMatchObject({ ok: false, problems: [words] })
    const refusal = { code: 'STORE_UNAVAILABLE', message: words }
    const verbs: (() => Promise<unknown>)[] = [
      () => late.get([]),
      () => late.find({}),
      () => late.tally('state'),
      () => late.totals(),
      () => late.claim({ worker: 'w', limit: 1, leaseMs: 1000 }),
      () => late.apply([]),
      () => late.remove({ ids: [] }),
      () => late.records.get('kind', 'id'),
      () => late.records.put('kind', 'id', 1),
    ]
    for (const verb of verbs) await expect(verb()).rejects.toMatchObject(refusal)
    expect(late.watch(() => {})).toBeTypeOf('function')
    await late.close()
    for (const verb of [...verbs, () => late.add([aLetter()])])
      await expect(verb()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('joins no transaction until it is open', async () => {
    const add = vi.fn(async () => [])
    const store = passThrough(memoryStore(), {
      open: () => Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'away')),
      within: () => ({ add }),
    })
    const late = addSpool(store, { clock: fakeClock() })
    await late.open()
    await expect(late.within!({}).add([])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(add).not.toHaveBeenCalled()
    await late.close()
  })

  it.each(['INVALID_CONFIG', 'INVALID_INPUT', 'STORE_UNSAFE'] as const)(
    'rejects open with %s, and leaves nothing behind',
    async (code) => {
      await using folder = await aFolder()
      const { late, behaviour, clock } = await aLateStore({ path: join(folder.path, 'spool') })
      behaviour.open = () => Promise.reject(new RedriveError(code, 'refused'))
      await expect(late.open()).rejects.toMatchObject({ code })
      expect(readdirSync(folder.path)).toEqual([])
      expect(clock.pending()).toBe(0)
    },
  )

  it('is reported once when it rejects the open later, and is retried', async () => {
    const { late, behaviour, clock, events, until, recover } = await aLateStore()
    await late.open()
    behaviour.open = () => Promise.reject(new RedriveError('INVALID_CONFIG', 'wrong password'))
    for (let minute = 0; minute < 5; minute++) await clock.advance(60_000)
    expect(events.slice(1)).toMatchObject([
      { type: 'error', during: 'opening the store', error: { code: 'INVALID_CONFIG' } },
    ])
    expect((await late.health()).problems).toEqual([expect.stringContaining('wrong password')])
    const letter = aLetter()
    await late.add([letter])
    recover()
    await until(() => events.some(({ type }) => type === 'drained'))
    await late.close()
  })

  it('has no time limit for its migration', async () => {
    const { late, inner, behaviour, clock } = await aLateStore({ timeoutMs: 2000 })
    const migrated = Promise.withResolvers<void>()
    behaviour.open = () => migrated.promise.then(() => inner.open())
    const opening = late.open()
    await clock.advance(60_000)
    migrated.resolve()
    await opening
    expect(await late.health()).toMatchObject({ ok: true })
    await late.close()
  })

  it('can be closed while it does not respond', async () => {
    const { late, behaviour, clock } = await aLateStore()
    behaviour.open = () => new Promise(() => {})
    const opening = late.open()
    await Promise.resolve()
    await late.close()
    await expect(opening).rejects.toMatchObject({ code: 'CLOSED' })
    expect(clock.pending()).toBe(0)
  })

  it('can be closed while it is unreachable, and leaves its letters to the next process', async () => {
    await using folder = await aFolder()
    const first = await aLateStore({ path: folder.path })
    await first.late.open()
    const letters = some(3)
    await first.late.add(letters)
    await first.late.close()
    expect(first.clock.pending()).toBe(0)
    const next = await aLateStore({ path: folder.path }, 2)
    await next.late.open()
    const later = some(2)
    await next.late.add(later)
    next.recover()
    await next.until(() => next.events.some(({ type }) => type === 'drained'))
    expect(await next.inner.get(idsOf([...letters, ...later]))).toHaveLength(5)
    await next.late.close()
  })
})

describe('the order of a spool', () => {
  it('is preserved within a lane: later letters of the lane wait, others do not', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({
      path: folder.path,
      capacity: { maxItems: 3, overflow: 'reject' },
    })
    const { store, behaviour, spooled, clock } = bench
    await spooled.add(some(2))
    behaviour.mode = 'unreachable'
    const waiting = some(2, { lane: 'a' })
    await spooled.add(waiting)
    behaviour.mode = 'ok'
    // The store is back, but has room for one of them only: the other waits on.
    expect(await bench.until('error')).toMatchObject({ error: { code: 'QUEUE_FULL' } })
    expect(await spooled.spool()).toMatchObject({ letters: 1 })
    const [behind, ahead] = [aLetter({ lane: 'a' }), aLetter()]
    expect(await spooled.add([behind])).toEqual([added])
    expect(await spooled.add([ahead])).toEqual([added])
    expect(behaviour.addedIds.at(-1)).toBe(ahead.id)
    expect(await store.get([behind.id])).toEqual([])
    await store.remove({ ids: [waiting[0]!.id, ahead.id, ...behaviour.addedIds.slice(0, 2)] })
    await bench.until('drained')
    expect(behaviour.addedIds.slice(-2)).toEqual([waiting[1]!.id, behind.id])
    expect(clock.pending()).toBe(0)
    expect(await spooled.add([aLetter({ lane: 'a' })])).toEqual([added])
  })

  it.each([{ dedupeKey: 'k' }, { dependsOn: ['x'] }])(
    'is preserved for letters with %j, too',
    async (overrides) => {
      await using folder = await aFolder()
      await using bench = await aSpool({
        path: folder.path,
        capacity: { maxItems: 1, overflow: 'reject' },
      })
      const [other] = some(1)
      await bench.spooled.add([other!])
      bench.behaviour.mode = 'unreachable'
      await bench.spooled.add([aLetter(overrides)])
      bench.behaviour.mode = 'ok'
      await bench.until('error')
      await bench.spooled.add([aLetter(overrides)])
      expect(await bench.spooled.spool()).toMatchObject({ letters: 2 })
      await bench.store.remove({ ids: [other!.id] })
    },
  )

  it('does not delay other letters during a long drain', async () => {
    const inner = memoryStore({ clock: fakeClock() })
    await using bench = await aSpool({}, inner)
    bench.behaviour.mode = 'unreachable'
    const waiting = some(3)
    await bench.spooled.add(waiting)
    const gate = Promise.withResolvers<void>()
    const is = { held: false }
    bench.behaviour.instead = async (letters) => {
      is.held ||= letters.length === 2
      if (letters.length === 2) await gate.promise
      return inner.add(letters)
    }
    while (!is.held) await bench.clock.advance(100)
    const [ahead, behind] = [aLetter(), aLetter({ lane: 'a' })]
    await bench.spooled.add([ahead])
    await bench.spooled.add([behind])
    expect(idsOf(await inner.get(idsOf([...waiting, ahead, behind])))).toEqual(
      idsOf([waiting[0]!, ahead]),
    )
    gate.resolve()
    expect(await bench.until('drained')).toMatchObject({ count: 4 })
  })

  it('counts occurrences when the waiting letters reach the store', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    const letters = some(3, { dedupeKey: 'k' })
    for (const letter of letters) expect(await bench.spooled.add([letter])).toEqual([added])
    bench.behaviour.mode = 'ok'
    expect(await bench.until('drained')).toMatchObject({ count: 3, duplicates: 2 })
    expect(await bench.store.get(idsOf(letters))).toMatchObject([
      { id: letters[0]!.id, occurrences: 3 },
    ])
  })
})

describe('a letter that the store rejects', () => {
  it('is set aside, and the others reach the store', async () => {
    await using folder = await aFolder()
    const inner = memoryStore({ clock: fakeClock() })
    const letters = some(5)
    const bad = letters[2]!.id
    const picky = passThrough(inner, {
      add: async (given: readonly DeadLetter[]) => {
        if (given.some(({ id }) => id === bad)) throw new RedriveError('INVALID_INPUT', 'not this')
        return inner.add(given)
      },
    })
    await using bench = await aSpool({ path: folder.path }, picky)
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add(letters)
    bench.behaviour.mode = 'ok'
    expect(await bench.until('drained')).toMatchObject({ count: 4 })
    expect(idsOf(await inner.get(idsOf(letters)))).toEqual(
      idsOf(letters).filter((id) => id !== bad),
    )
    const [event] = bench.eventsOf('set-aside')
    expect(event).toMatchObject({ what: 'refused', why: 'not this' })
    const kept = (await import(event!.file, { with: { type: 'json' } })) as { default: unknown }
    expect(kept.default).toMatchObject({ why: 'not this', letter: { id: bad } })
    expect(await bench.spooled.health()).toMatchObject({
      ok: false,
      problems: [expect.stringContaining('1 refused')],
    })
  })

  it('is set aside if its id exists with another payload', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    const first = aLetter()
    await bench.spooled.add([first])
    bench.behaviour.mode = 'unreachable'
    const bytes = Buffer.from('other')
    await bench.spooled.add([
      aLetter({ id: first.id, payload: { ...first.payload, bytes, size: 5 } }),
      aLetter({ id: first.id }),
    ])
    bench.behaviour.mode = 'ok'
    expect(await bench.until('drained')).toMatchObject({ count: 1, duplicates: 1 })
    expect(bench.eventsOf('set-aside')).toMatchObject([{ what: 'refused' }])
    expect(await bench.store.get([first.id])).toEqual([first])
  })
})

describe('the limits of a spool', () => {
  it('reject letters when it is full, and accept them again after a drain', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path, maxBytes: 4000 })
    bench.behaviour.mode = 'unreachable'
    const kept: string[] = []
    for (;;) {
      const letter = aLetter()
      const error: unknown = await bench.spooled.add([letter]).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (error) {
        expect(error).toMatchObject({
          code: 'STORE_UNAVAILABLE',
          message: expect.stringContaining('spoolMaxBytes') as string,
        })
        break
      }
      kept.push(letter.id)
    }
    expect(kept.length).toBeGreaterThan(1)
    expect((await bench.spooled.spool()).bytes).toBeLessThanOrEqual(4000)
    bench.behaviour.mode = 'ok'
    await bench.until('drained')
    expect(bench.behaviour.addedIds).toEqual(kept)
    bench.behaviour.mode = 'unreachable'
    expect(await bench.spooled.add([aLetter()])).toEqual([added])
  })

  it('allow only the owner to read its files', async () => {
    await using folder = await aFolder()
    const path = join(folder.path, 'a', 'b')
    await using bench = await aSpool({ path })
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add([aLetter()])
    expect(statSync(path).mode & 0o777).toBe(0o700)
    const files = readdirSync(path)
    expect(files).toHaveLength(2)
    for (const file of files) expect(statSync(join(path, file)).mode & 0o777).toBe(0o600)
  })
})

describe('closing a spool', () => {
  it('leaves waiting letters to the next open', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    const letters = some(20)
    await bench.spooled.add(letters)
    await bench.spooled.close()
    expect(bench.clock.pending()).toBe(0)
    await expect(bench.spooled.add([aLetter()])).rejects.toMatchObject({ code: 'CLOSED' })
    bench.behaviour.mode = 'ok'
    await bench.reopen()
    await bench.until('drained')
    expect(bench.behaviour.addedIds).toEqual(idsOf(letters))
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('does not wait for a store that hangs', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add([aLetter()])
    bench.behaviour.mode = 'hanging'
    await bench.clock.advance(1000)
    await expect(bench.spooled.close()).resolves.toBeUndefined()
  })

  it('leaves no timer behind, also when it was opened twice', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add([aLetter()])
    const tried = Promise.withResolvers<void>()
    bench.behaviour.instead = async () => {
      tried.resolve()
      throw new RedriveError('STORE_UNAVAILABLE', 'it is gone')
    }
    await bench.spooled.open()
    await tried.promise
    await bench.clock.advance(1)
    expect(bench.clock.pending()).toBe(1)
    await bench.spooled.close()
    expect(bench.clock.pending()).toBe(0)
  })

  it('during its open leaves waiting letters to the next open', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add([aLetter()])
    await bench.spooled.close()
    bench.behaviour.mode = 'ok'
    const slow = Promise.withResolvers<void>()
    const overtaken = addSpool(passThrough(bench.store, { open: () => slow.promise }), {
      path: folder.path,
      clock: bench.clock,
    })
    const opening = overtaken.open()
    await overtaken.close()
    slow.resolve()
    const [opened] = await Promise.allSettled([opening])
    await bench.reopen()
    expect(opened).toMatchObject({ reason: { code: 'CLOSED' } })
    while (bench.eventsOf('drained').length === 0) await bench.clock.advance(1000)
    expect(bench.behaviour.addedIds).toHaveLength(1)
  })

  it('removes a folder that it created, and no other', async () => {
    await using folder = await aFolder()
    const made = await aSpool({ path: join(folder.path, 'spool') })
    await made.spooled.close()
    const found = await aSpool({ path: folder.path })
    await found.spooled.close()
    expect(readdirSync(folder.path)).toEqual([])
  })

  it('keeps a folder that another spool has open', async () => {
    await using folder = await aFolder()
    const path = join(folder.path, 'spool')
    const first = await aSpool({ path })
    await using second = await aSpool({ path })
    await first.spooled.close()
    second.behaviour.mode = 'unreachable'
    expect(await second.spooled.add([aLetter()])).toEqual([added])
  })
})

describe('a spool that cannot be read', () => {
  it('passes letters to the store, except those with an order to preserve', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    bench.behaviour.mode = 'unreachable'
    const [old, plain, ordered] = [aLetter({ lane: 'l' }), aLetter(), aLetter({ lane: 'l' })]
    await bench.spooled.add([old])
    await bench.spooled.close()
    const restore = block(join(folder.path, readdirSync(folder.path)[0]!))
    bench.behaviour.mode = 'ok'
    await bench.reopen()
    // It was tried, and will be tried again.
    await waitFor(() => expect(bench.clock.pending()).toBe(1))
    expect(bench.eventsOf('error')).toHaveLength(1)
    await bench.spooled.add([plain])
    await bench.spooled.add([ordered])
    expect(bench.behaviour.addedIds).toEqual([plain.id])
    restore()
    await bench.until('drained')
    expect(bench.behaviour.addedIds).toEqual(idsOf([plain, old, ordered]))
  })
})

describe('the health of a spool', () => {
  it('is not ok while letters wait, and reports their number, their age and the reason', async () => {
    await using folder = await aFolder()
    await using bench = await aSpool({ path: folder.path })
    expect(await bench.spooled.health()).toMatchObject({
      ok: true,
      checks: { spool: `${folder.path}: empty` },
      problems: [],
    })
    bench.behaviour.mode = 'unreachable'
    const [letter] = some(1)
    await bench.spooled.add([letter!])
    const { ok, problems } = await bench.spooled.health()
    expect(ok).toBe(false)
    expect(problems).toEqual([
      `1 letter waits in the spool (${folder.path}), the oldest since ${letter!.deadLetteredAt}: it is gone`,
    ])
    bench.behaviour.mode = 'ok'
    await bench.until('drained')
    expect(await bench.spooled.health()).toMatchObject({ ok: true, problems: [] })
  })

  it('never rejects, and does not wait for a store that hangs', async () => {
    const clock = fakeClock()
    const silent = passThrough(memoryStore({ clock }), {
      health: () => new Promise<never>(() => {}),
    })
    const bench = await aSpool({}, silent)
    const health = bench.spooled.health()
    await bench.clock.advance(5000)
    expect(await health).toMatchObject({ ok: false })
    await bench.spooled.close()
  })
})

describe('a spool in memory', () => {
  it('holds letters as on disk, and warns in health that they would be lost', async () => {
    await using bench = await aSpool({ maxBytes: 10_000 })
    bench.behaviour.mode = 'unreachable'
    const letters = some(4)
    await bench.spooled.add(letters)
    await expect(bench.spooled.add(some(4))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await bench.spooled.health()).toMatchObject({
      ok: false,
      problems: [expect.stringContaining('in memory only')],
    })
    bench.behaviour.mode = 'ok'
    expect(await bench.until('drained')).toMatchObject({ count: 4 })
    expect(bench.behaviour.addedIds).toEqual(idsOf(letters))
  })

  it('reports letters that are lost on close', async () => {
    await using bench = await aSpool()
    bench.behaviour.mode = 'unreachable'
    await bench.spooled.add([aLetter()])
    await bench.spooled.close()
    expect(bench.eventsOf('error')).toHaveLength(1)
  })
})
