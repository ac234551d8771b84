import { describe, expect, it } from 'vitest'
import type { Group, GroupDetail } from '../../../src/letter/group.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, expectToFit, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()

async function aStore() {
  const letters = ['v1-a', 'v1-a', 'v1-b'].map((fingerprint) =>
    aLetter({ fingerprint, state: 'parked' }),
  )
  const url = await aStoreFile(folder, letters)
  const run = (...args: string[]) => redrive([...args, '--store', url])
  const show = async (fingerprint: string): Promise<GroupDetail> =>
    JSON.parse((await run('group', 'show', fingerprint, '--json')).out) as GroupDetail
  return { run, show }
}

describe('redrive groups', () => {
  it('lists groups, those with the most letters first', async () => {
    const { run } = await aStore()
    const { out } = await run('groups', '--json')
    const groups = out.trimEnd().split('\n')
    expect(groups.map((line) => JSON.parse(line) as Group)).toMatchObject([
      { fingerprint: 'v1-a', count: 2, status: 'open' },
      { fingerprint: 'v1-b', count: 1, status: 'open' },
    ])
    expectToFit((await run('groups')).out)
  })

  it('escapes what letters contain', async () => {
    const failure = { ...aLetter().failure, message: hostileText }
    const url = await aStoreFile(folder, [
      aLetter({ fingerprint: 'v1-a', queue: hostileText, failure }),
    ])
    expectToFit((await redrive(['groups', '--store', url])).out)
  })

  it('changes the status, the assignee and the notes of a group', async () => {
    const { run, show } = await aStore()
    const by = ['--by', 'ada'] as const
    expect((await run('group', 'resolve', 'v1-a', '--in-version', '2.0.0', ...by)).out).toBe(
      'v1-a is resolved.\n',
    )
    await run('group', 'assign', 'v1-a', 'bob', ...by)
    await run('group', 'note', 'v1-a', 'see the runbook', ...by)
    expect(await show('v1-a')).toMatchObject({
      status: 'resolved',
      assignee: 'bob',
      resolved: { inVersion: '2.0.0', by: 'ada' },
      notes: [{ by: 'ada', text: 'see the runbook' }],
    })
    await run('group', 'assign', 'v1-a', ...by)
    await run('group', 'reopen', 'v1-a', ...by)
    const reopened = await show('v1-a')
    expect(reopened.status).toBe('open')
    expect(reopened.assignee).toBeUndefined()
    expect((await run('group', 'show', 'v1-a')).out).toContain('see the runbook')
  })

  it('merges groups, and splits them again', async () => {
    const { run, show } = await aStore()
    await run('group', 'merge', 'v1-a', 'v1-b')
    expect(await show('v1-b')).toMatchObject({ fingerprint: 'v1-a', count: 3, merged: ['v1-b'] })
    await run('group', 'split', 'v1-b')
    expect(await show('v1-b')).toMatchObject({ fingerprint: 'v1-b', count: 1 })
  })

  it('ignores a group until a limit', async () => {
    const { run, show } = await aStore()
    await run('group', 'ignore', 'v1-a', '--count', '5')
    expect(await show('v1-a')).toMatchObject({ status: 'ignored', ignored: { count: 5 } })
  })

  it('reports an unknown group', async () => {
    const { run } = await aStore()
    expect(await run('group', 'reopen', 'nope')).toMatchObject({ exit: 4 })
    expect((await run('group', 'show', 'nope')).out).toBe('No such group.\n')
  })
})
