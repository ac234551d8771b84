import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { Lifetime } from '../../src/stores/lifetime.ts'

const healthy = { ok: true, checks: {}, problems: [] }
const nothing = async (): Promise<void> => {}

describe('Lifetime', () => {
  it('rejects work before it is open and after it is closed, with the reason', async () => {
    const life = new Lifetime('paper')
    const work = (): Promise<string> => life.run(() => 'done')
    await expect(work()).rejects.toMatchObject({
      code: 'CLOSED',
      message: 'the paper store is not open yet: await open() first',
    })
    await life.open(nothing)
    expect(await work()).toBe('done')
    await life.close(nothing)
    const closed = { code: 'CLOSED', message: 'the paper store is closed' }
    await expect(work()).rejects.toMatchObject(closed)
    await expect(life.open(nothing)).rejects.toMatchObject(closed)
  })

  it('is not open after a failed open, and can be opened again', async () => {
    const life = new Lifetime('paper')
    await expect(life.open(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(life.state).toBe('new')
    await life.open(nothing)
    expect(life.state).toBe('open')
  })

  it('releases the resources of a failed open, and reports its error even if the release fails', async () => {
    const events: string[] = []
    const release = async (): Promise<void> => {
      events.push('released')
      throw new Error('the connection is dead')
    }
    const life = new Lifetime('paper', { release })
    await expect(life.open(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(events).toEqual(['released'])
    await life.open(nothing)
    await expect(life.open(() => Promise.reject(new Error('again')))).rejects.toThrow('again')
    expect(events).toEqual(['released'])
  })

  it('releases nothing while another open is in progress', async () => {
    let released = 0
    const life = new Lifetime('paper', { release: async () => void (released += 1) })
    const other = Promise.withResolvers<void>()
    const opening = life.open(() => other.promise)
    await expect(life.open(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(released).toBe(0)
    other.reject(new Error('neither'))
    await expect(opening).rejects.toThrow('neither')
    expect(released).toBe(1)
  })

  it('reports a refusal at open as INVALID_CONFIG, and leaves an outage unchanged', async () => {
    const life = new Lifetime('paper', { isRefusal: (cause) => cause === 'wrong password' })
    const failing = (cause: string): Promise<void> =>
      life.open(() => Promise.reject(new RedriveError('STORE_UNAVAILABLE', 'no', { cause })))
    await expect(failing('wrong password')).rejects.toMatchObject({
      code: 'INVALID_CONFIG',
      message: 'no',
      cause: 'wrong password',
    })
    await expect(failing('no answer')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('releases once, after all work in progress, including work that fails or starts meanwhile', async () => {
    const life = new Lifetime('paper')
    await life.open(nothing)
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const steps: string[] = []
    const failing = life.run(() => one.promise)
    const going = life.run(async () => {
      await one.promise.catch(() => {})
      await life.track(two.promise)
      steps.push('work')
    })
    const closing = [1, 2].map(() => life.close(async () => void steps.push('released')))
    one.reject(new Error('lost'))
    await expect(failing).rejects.toThrow('lost')
    expect(steps).toEqual([])
    two.resolve()
    await Promise.all([going, ...closing])
    expect(steps).toEqual(['work', 'released'])
  })

  it('stays closed when it was closed during open', async () => {
    const life = new Lifetime('paper')
    const preparing = Promise.withResolvers<void>()
    let released = false
    const opening = life.open(() => preparing.promise)
    const closing = life.close(async () => void (released = true))
    await Promise.resolve()
    expect(released).toBe(false)
    preparing.resolve()
    await Promise.all([opening, closing])
    expect([life.state, released]).toEqual(['closed', true])
  })

  it('reports the health of the store, or why it cannot be checked', async () => {
    const life = new Lifetime('paper')
    const problems = async (check = async () => healthy): Promise<string[]> =>
      (await life.health(check)).problems
    expect(await problems()).toEqual(['the store is not open'])
    await life.open(nothing)
    expect(await life.health(async () => healthy)).toBe(healthy)
    expect(await problems(() => Promise.reject(new Error('released')))).toEqual(['released'])
    await life.close(nothing)
    expect(await problems()).toEqual(['the store is closed'])
  })
})
