import { describe, expect, it } from 'vitest'
import { ObserverHub, type RedriveEvent } from '../src/observer.ts'
import { archive, resolve, retry } from '../src/letter/moves.ts'
import { aLetter } from '../src/testing/a-letter.ts'

const evicted: RedriveEvent = { type: 'evicted', count: 1 }

describe('ObserverHub', () => {
  it('calls listeners of the type and of all types, until they are removed', () => {
    const hub = new ObserverHub()
    const calls: string[] = []
    const leave = hub.on('evicted', () => calls.push('one'))
    hub.on('*', () => calls.push('all'))
    hub.on('full', () => calls.push('other'))
    hub.emit(evicted)
    leave()
    hub.emit(evicted)
    expect(calls).toEqual(['all', 'one', 'all'])
  })

  it('calls a listener only once that is removed and added during an event', () => {
    const hub = new ObserverHub()
    let calls = 0
    const again = (): void => {
      calls += 1
      leave()
      // Without an end of its own, the test could not fail.
      if (calls < 5) leave = hub.on('evicted', again)
    }
    let leave = hub.on('evicted', again)
    hub.emit(evicted)
    expect(calls).toBe(1)
    hub.emit(evicted)
    expect(calls).toBe(2)
  })

  it('does not call a listener that another one removed during the event', () => {
    const hub = new ObserverHub()
    const calls: string[] = []
    hub.on('*', () => leave())
    const leave = hub.on('*', () => calls.push('removed'))
    hub.emit(evicted)
    expect(calls).toEqual([])
  })

  it('calls the other listeners when one throws, and emits the error', () => {
    const hub = new ObserverHub()
    const calls: string[] = []
    hub.on('evicted', () => {
      throw new Error('broken')
    })
    hub.on('evicted', () => calls.push('second'))
    hub.on('error', (event) => calls.push(event.type === 'error' ? event.during : ''))
    hub.emit(evicted)
    expect(calls).toEqual(['observer of evicted', 'second'])
  })

  it('gives each listener its own copy of the letter', () => {
    const hub = new ObserverHub()
    const letter = aLetter()
    const whole = structuredClone(letter)
    const calls: unknown[] = []
    hub.on('*', (event) => {
      if (!('letter' in event) || !event.letter) return
      const { payload, ...redacted }: Partial<typeof letter> = event.letter
      Object.assign(event.letter, { metadata: {}, queue: 'redacted' })
      delete (payload as Partial<typeof letter.payload>).bytes
      Reflect.deleteProperty(event.letter, 'payload')
      calls.push(redacted.id)
    })
    hub.on('captured', (event) => calls.push(event))
    hub.emit({ type: 'captured', letter })
    expect(calls).toEqual([whole.id, { type: 'captured', letter: whole }])
    expect(letter).toEqual(whole)
  })

  it('gives the letter after a change to listeners of its action, of changed and of all', () => {
    const hub = new ObserverHub()
    const before = aLetter({ state: 'retrying', epoch: 1, retries: 1 })
    const by = { at: '2026-01-01T00:00:05.000Z', actor: 'w', guard: 'epoch' } as const
    const heard: string[] = []
    const hear = (event: RedriveEvent): unknown =>
      'letter' in event && heard.push(`${event.type} ${event.letter?.state}`)
    const leave = (['resolved', 'changed', '*'] as const).map((type) => hub.on(type, hear))
    hub.emitChangeOf(before, resolve(before, by), 7)
    expect(heard).toEqual([
      'resolved resolved',
      'resolved resolved',
      'changed resolved',
      'changed resolved',
    ])
    for (const remove of leave) remove()
    hub.emitChangeOf(before, resolve(before, by), 7)
    expect(heard).toHaveLength(4)
  })

  it('reports when letters become due, with and without listeners', () => {
    const hub = new ObserverHub()
    const due: string[] = []
    hub.setDueListener((at) => due.push(at))
    const at = '2026-01-01T00:00:05.000Z'
    const pending = aLetter({ state: 'pending', retryAt: at })
    hub.emit({ type: 'captured', letter: pending })
    const parked = aLetter({ state: 'parked' })
    hub.emit({ type: 'captured', letter: parked })
    const by = { at, actor: 'ann', guard: 'version' } as const
    hub.emitChangeOf(parked, retry(parked, by, '2026-01-01T00:00:06.000Z'))
    hub.on('changed', () => {})
    hub.emitChangeOf(parked, retry(parked, by, '2026-01-01T00:00:07.000Z'))
    hub.emitChangeOf(pending, archive(pending, by))
    expect(due).toEqual([at, '2026-01-01T00:00:06.000Z', '2026-01-01T00:00:07.000Z'])
  })

  it('catches a rejecting listener, and does not loop when a listener of error throws', async () => {
    const hub = new ObserverHub()
    const broken = async (): Promise<never> => Promise.reject(new Error('broken'))
    let troubles = 0
    hub.on('*', broken)
    hub.on('error', () => troubles++)
    hub.emit(evicted)
    await new Promise((resolve) => void setImmediate(resolve))
    expect(troubles).toBe(1)
  })
})
