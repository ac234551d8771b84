import { beforeEach, describe, expect, it } from 'vitest'
import type { Mailbox } from '../../src/mailbox.ts'
import { memoryMailbox } from '../../src/mailboxes/memory/memory.ts'
import { openedByName } from '../../src/mailboxes/opened-by-name.ts'
import { fakeClock } from '../../src/testing/index.ts'

describe('openedByName', () => {
  let clock: ReturnType<typeof fakeClock>
  let opened: Mailbox[]
  let byName: ReturnType<typeof openedByName>

  const open = async (name: string): Promise<Mailbox> => {
    const mailbox = memoryMailbox({ name, clock })
    await mailbox.open()
    opened.push(mailbox)
    return mailbox
  }
  const stillOpen = (): string[] => opened.filter(({ closed }) => !closed).map(({ name }) => name)

  beforeEach(() => {
    clock = fakeClock()
    opened = []
    byName = openedByName(open, clock)
  })

  it('opens each mailbox once per name', async () => {
    const [first, again, other] = await Promise.all([
      byName.resolve('a'),
      byName.resolve('a'),
      byName.resolve('b'),
    ])
    expect(again).toBe(first)
    expect(other).not.toBe(first)
    expect(stillOpen()).toEqual(['a', 'b'])
  })

  it('closes a mailbox a minute after it was last resolved, when others are resolved', async () => {
    for (const name of ['a', 'b', 'c']) await byName.resolve(name)
    await clock.advance(40_000)
    await byName.resolve('b')
    await clock.advance(40_000)
    expect(stillOpen()).toEqual(['a', 'b', 'c'])
    await byName.resolve('d')
    expect(stillOpen()).toEqual(['b', 'd'])
    await byName.resolve('a')
    expect(stillOpen()).toEqual(['b', 'd', 'a'])
  })

  it('closes all mailboxes when it closes, even those being opened', async () => {
    await byName.resolve('a')
    void byName.resolve('b')
    await byName.close()
    expect(opened.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(stillOpen()).toEqual([])
  })

  it('opens a mailbox again after a failure', async () => {
    let there = false
    byName = openedByName((name) => (there ? open(name) : Promise.reject(new Error('away'))), clock)
    await expect(byName.resolve('a')).rejects.toThrow('away')
    there = true
    expect(await byName.resolve('a')).toBe(opened[0])
    await byName.close()
  })
})
