import { describe, expect, it } from 'vitest'
import type { LetterSummary } from '../../../src/letter/letter.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { aFolder, aStoreFile, expectToFit, hostileText, redrive } from '../run-cli.ts'

const folder = aFolder()
const at = '2026-01-01T00:00:00.000Z'
/** The hostile string without characters that a queue name must not have. */
const hostileQueue = hostileText.replaceAll(/\p{Cc}/gu, '')
const failure = (message: string) => ({ name: 'Error', message, causes: [], at })

/** Ids of letters that were captured seconds apart. */
const id = (place: number): string => `01995c3a-${place}000-7000-8000-000000000000`

const letters = [
  aLetter({
    id: id(0),
    queue: 'charge-card',
    failure: failure('socket hang up'),
    category: 'network',
  }),
  aLetter({
    id: id(1),
    queue: 'charge-card',
    state: 'exhausted',
    failure: failure(`a long story ${'x'.repeat(300)}`),
  }),
  aLetter({
    id: id(2),
    queue: hostileQueue,
    state: 'parked',
    failure: failure(hostileText),
    tags: ['odd'],
  }),
  aLetter({
    id: id(3),
    queue: '支払い',
    state: 'resolved',
    failure: failure('見つかりません'.repeat(20)),
  }),
  aLetter({ id: id(4), queue: 'old', state: 'archived' }),
]
const url = await aStoreFile(folder, letters)
const list = (...args: string[]) => redrive(['list', '--store', url, ...args])
const ids = async (...args: string[]): Promise<string[]> => {
  const { out } = await list('--json', ...args)
  return out
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as LetterSummary).id)
}

describe('list', () => {
  it('prints a table of 80 columns, newest first, without archived letters', async () => {
    const { out, err, exit } = await list()
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expectToFit(out)
    const lines = out.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^ID +QUEUE +STATE .*TRY +DUE +ERROR$/)
    expect(lines[3]).toMatch(/^01995c3a-1 charge-card +exhausted +transient +3\/3 +a long s.*…$/)
    expect(lines).toHaveLength(6)
    expect(lines.at(-1)).toBe('4 letters.')
  })

  it('adapts to the width of the terminal', async () => {
    const wide = await redrive(['list', '--store', url], { env: { COLUMNS: '160' } })
    expect(Math.max(...wide.out.split('\n').map((line) => line.length))).toBeGreaterThan(100)
    const narrow = await redrive(['list', '--store', url], { env: { COLUMNS: '50' } })
    expect(narrow.out.split('\n').filter((line) => line.length > 50)).toEqual([])
  })

  it('prints id prefixes that `show` accepts', async () => {
    const { out } = await list()
    const prefixes = out
      .split('\n')
      .slice(1, 5)
      .map((line) => line.split(' ')[0]!)
    expect(new Set(prefixes).size).toBe(4)
    const { out: whole } = await redrive(['show', '--json', '--store', url, prefixes[0]!])
    expect((JSON.parse(whole) as LetterSummary).id).toBe(id(3))
  })

  it('prints matching letters in the requested order', async () => {
    const filter = ['--queue', 'charge-card', '--state', 'pending,exhausted', '--order', 'oldest']
    expect(await ids(...filter)).toEqual([id(0), id(1)])
    expect(await ids('--all', '--state', 'archived')).toEqual([id(4)])
  })

  it('prints the cursor of the next page to standard error', async () => {
    const first = await list('--json', '--limit', '3')
    const [option, cursor] = first.err.trim().split(' ')
    expect(option).toBe('--cursor')
    expect(await ids('--limit', '3', '--cursor', cursor!)).toEqual([id(0)])
  })

  it('prints the total when it does not print all letters', async () => {
    expect((await list('--limit', '2')).out).toContain(
      '2 of 4 letters. More with --limit or --all.',
    )
  })

  it('prints JSON without control characters', async () => {
    const { out } = await list('--json', '--state', 'parked')
    expect(out.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect((JSON.parse(out) as LetterSummary).failure.message).toBe(hostileText)
  })

  it('reports that no letter matches', async () => {
    expect(await list('--queue', 'none')).toEqual({ out: 'No letter matches.\n', err: '', exit: 0 })
  })

  it.each([
    [['--state', 'parkd'], 'unknown state "parkd": did you mean parked?'],
    [['--order', 'size'], '--order must be one of newest, oldest, due, settled, got "size"'],
    [['--cursor', 'junk'], 'cursor'],
  ])('rejects %j', async (args, message) => {
    const { out, err, exit } = await list(...args)
    expect(err).toMatch(/^INVALID_INPUT: /)
    expect(err).toContain(message)
    expect({ out, exit }).toEqual({ out: '', exit: 2 })
  })
})
