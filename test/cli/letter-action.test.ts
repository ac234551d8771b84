import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { openMailbox } from '../../src/connect/mailbox.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { spawn } from '../processes.ts'
import { aFolder, aStoreFile, main, plainEnv, redrive } from './run-cli.ts'

const folder = aFolder()

async function aStore() {
  const letters = [
    aLetter({ queue: 'charge-card', state: 'exhausted' }),
    aLetter({ queue: 'charge-card', state: 'parked' }),
    aLetter({ queue: 'charge-card', state: 'resolved' }),
    aLetter({ queue: 'orders' }),
  ]
  const url = await aStoreFile(folder, letters)
  const run = (...args: string[]) => redrive([...args, '--store', url])
  const one = async (place: number): Promise<DeadLetter> =>
    JSON.parse((await run('show', '--json', letters[place]!.id)).out) as DeadLetter
  return { ids: letters.map(({ id }) => id), run, one }
}

describe('retry', () => {
  it('makes the given letters due, and reports that no worker is running', async () => {
    const { ids, run, one } = await aStore()
    const { out, err, exit } = await run('retry', ids[0]!, ids[1]!, '--by', 'ada')
    expect({ err, exit }).toEqual({ err: '', exit: 0 })
    expect(out.split('\n')).toEqual([
      `${ids[0]}  charge-card  due now`,
      `${ids[1]}  charge-card  due now`,
      'No worker for charge-card is running: the letters wait until one starts.',
      '',
    ])
    const letter = await one(0)
    expect(letter).toMatchObject({ state: 'pending', retries: 0 })
    expect(letter.history.at(-1)).toMatchObject({ action: 'retry', actor: 'ada' })
  })

  it('acts on the letters counted in its prompt, not on letters captured after it', async () => {
    const url = await aStoreFile(folder, [aLetter({ state: 'parked' })])
    const terminal = `for (const end of ['stdin', 'stdout']) process[end].isTTY = true`
    const child = spawn(process.execPath, [main, 'retry', '--all', '--store', url], {
      env: {
        ...plainEnv,
        NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(terminal)}`,
      },
    })
    let out = ''
    const prompted = Promise.withResolvers<void>()
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      out += part
      if (out.includes('[y/N]')) prompted.resolve()
    })
    await prompted.promise
    const store = sqliteStore({ path: url.replace('sqlite:', '') })
    await store.open()
    await store.add([aLetter({ state: 'parked' })])
    child.stdin.end('y\n')
    await once(child, 'close')
    const counts = await store.tally('state', {})
    await store.close()
    expect(out).toContain('retry 1 letter (1 parked)? [y/N]')
    expect(Object.fromEntries(counts)).toEqual({ pending: 1, parked: 1 })
  })

  it('acts on a filter only with --yes, and otherwise prints the number of matches', async () => {
    const { run, one } = await aStore()
    const refused = await run('retry', '--queue', 'charge-card')
    expect(refused).toEqual({
      out: '',
      err: 'INVALID_INPUT: retry would act on 2 letters (1 exhausted, 1 parked): add --yes to confirm\n',
      exit: 2,
    })
    expect((await one(0)).state).toBe('exhausted')
    const done = await run('retry', '--queue', 'charge-card', '--yes')
    expect(done.out).toContain('2 letters due now.')
    expect(await Promise.all([one(0), one(2)])).toMatchObject([
      { state: 'pending' },
      { state: 'resolved' },
    ])
  })

  it('reports the letters that it could not move, and moves the others', async () => {
    const { ids, run, one } = await aStore()
    const { out, err, exit } = await run('retry', ids[2]!, ids[1]!)
    expect(err).toBe(
      `ILLEGAL_MOVE: letter ${ids[2]} is resolved: retry is possible when it is pending, exhausted, parked\n`,
    )
    expect(out).toContain(`${ids[1]}  charge-card  due now`)
    expect(exit).toBe(5)
    expect((await one(1)).state).toBe('pending')
  })

  it('changes nothing when one of the ids is unknown', async () => {
    const { ids, run, one } = await aStore()
    expect(await run('retry', ids[0]!, '01995c3a-0000')).toMatchObject({ out: '', exit: 4 })
    expect((await one(0)).state).toBe('exhausted')
  })

  it('rejects neither or both of ids and a filter', async () => {
    const { ids, run } = await aStore()
    for (const args of [[], [ids[0]!, '--all']]) {
      const { err, exit } = await run('retry', ...args)
      expect(err).toContain('retry needs either ids or a filter')
      expect(exit).toBe(2)
    }
  })

  it('rejects an empty --text', async () => {
    const { run } = await aStore()
    const { err, exit } = await run('retry', '--text', '', '--yes')
    expect({ err, exit }).toEqual({
      err: 'INVALID_INPUT: --text is empty: give a string to search for\n',
      exit: 2,
    })
  })

  it('rejects a state that cannot be retried', async () => {
    const { run } = await aStore()
    const { err, exit } = await run('retry', '--state', 'resolved')
    expect(err).toBe(
      'ILLEGAL_MOVE: retry is possible only in these states: pending, exhausted, parked; change --state\n',
    )
    expect(exit).toBe(5)
  })
})

describe('archive', () => {
  it('prints one line of JSON per letter with --json', async () => {
    const { ids, run } = await aStore()
    const { out } = await run('archive', '--all', '--yes', '--json')
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    // Queues take turns.
    expect(lines).toEqual(
      [0, 3, 1, 2].map((place) => ({
        id: ids[place],
        ok: true,
        queue: place === 3 ? 'orders' : 'charge-card',
        state: 'archived',
      })),
    )
    const again = await run('archive', ids[0]!, '--json')
    expect(JSON.parse(again.out)).toMatchObject({ id: ids[0], ok: false, code: 'ILLEGAL_MOVE' })
    expect(again.exit).toBe(5)
  })

  it('reports that no letter matches', async () => {
    const { run } = await aStore()
    expect(await run('archive', '--queue', 'none')).toEqual({
      out: 'No letter matches.\n',
      err: '',
      exit: 0,
    })
  })
})

describe('restore', () => {
  it('returns archived letters to their previous state', async () => {
    const { ids, run, one } = await aStore()
    await run('archive', '--queue', 'charge-card', '--yes')
    const { out, err, exit } = await run('restore', ids[0]!, '--by', 'ada')
    expect({ out, err, exit }).toEqual({
      out: `${ids[0]}  charge-card  restored\n`,
      err: '',
      exit: 0,
    })
    const letter = await one(0)
    expect(letter.state).toBe('exhausted')
    expect(letter.history.at(-1)).toMatchObject({ action: 'restore', actor: 'ada' })
  })

  it('finds archived letters by a filter that does not name their state', async () => {
    const { ids, run, one } = await aStore()
    await run('archive', '--all', '--yes')
    const done = await run('restore', '--queue', 'charge-card', '--yes')
    expect(done).toEqual({ out: '3 letters restored.\n', err: '', exit: 0 })
    const states = await Promise.all(ids.map(async (_, place) => (await one(place)).state))
    expect(states).toEqual(['exhausted', 'parked', 'resolved', 'archived'])
  })

  it('rejects a letter that is not archived', async () => {
    const { ids, run } = await aStore()
    const { err, exit } = await run('restore', ids[0]!)
    expect(err).toBe(
      `ILLEGAL_MOVE: letter ${ids[0]} is exhausted: restore is possible when it is archived\n`,
    )
    expect(exit).toBe(5)
  })
})

describe('review', () => {
  it.each([
    [
      'requeue',
      'pending',
      'No worker for charge-card is running: the letters wait until one starts.\n',
    ],
    ['resolve', 'resolved', ''],
    ['discard', 'archived', ''],
  ])(
    'applies the decision %s, and stores the actor and the note',
    async (decision, state, after) => {
      const { ids, run, one } = await aStore()
      const why = ['--note', 'the card was valid', '--by', 'ada']
      const { out, err, exit } = await run('review', ids[1]!, '--decision', decision, ...why)
      expect({ out, err, exit }).toEqual({
        out: `${ids[1]}  charge-card  reviewed\n${after}`,
        err: '',
        exit: 0,
      })
      const letter = await one(1)
      expect(letter.state).toBe(state)
      expect(letter.review).toMatchObject({
        decision,
        decidedBy: 'ada',
        note: 'the card was valid',
      })
    },
  )

  it('accepts a filter, and no note', async () => {
    const { run, one } = await aStore()
    const done = await run('review', '--queue', 'charge-card', '--decision', 'resolve', '--yes')
    expect(done).toEqual({ out: '2 letters reviewed.\n', err: '', exit: 0 })
    expect((await one(0)).review).not.toHaveProperty('note')
  })

  it.each([
    [[], "required option '--decision <decision>' not specified"],
    [['--decision', 'forget'], 'Allowed choices are requeue, resolve, discard.'],
  ])('changes nothing with the decision arguments %j', async (decision, message) => {
    const { ids, run, one } = await aStore()
    const { out, err, exit } = await run('review', ids[1]!, ...decision)
    expect({ out, exit }).toEqual({ out: '', exit: 2 })
    expect(err).toContain(message)
    expect((await one(1)).state).toBe('parked')
  })

  it('rejects a letter that is neither parked nor exhausted', async () => {
    const { ids, run } = await aStore()
    const { err, exit } = await run('review', ids[3]!, '--decision', 'discard')
    expect(err).toBe(
      `ILLEGAL_MOVE: letter ${ids[3]} is pending: review is possible when it is parked, exhausted\n`,
    )
    expect(exit).toBe(5)
  })
})

describe('retry --at and --wait', () => {
  it('makes letters due at a given time', async () => {
    const { ids, run, one } = await aStore()
    const at = '2999-01-01T00:00:00.000Z'
    const { out, exit } = await run('retry', ids[0]!, '--at', at)
    expect({ out: out.split('\n')[0], exit }).toEqual({
      out: `${ids[0]}  charge-card  due at ${at}`,
      exit: 0,
    })
    expect(await one(0)).toMatchObject({ state: 'pending', retryAt: at })
    expect((await run('retry', ids[0]!, '--at', 'tomorrow')).err).toContain(
      '--at must be a duration',
    )
  })

  it('prints the outcome of each letter, and exits with 1 unless all are resolved', async () => {
    const policy = { kind: 'fixed', delayMs: 3_600_000 } as const
    const letters = [1, 2].map(() => aLetter({ state: 'exhausted', policy }))
    const url = await aStoreFile(folder, letters)
    const dlq = await DeadLetterQueue.open(url, { pollMs: 50 })
    dlq.handle('orders', ({ letter }) => {
      if (letter.id === letters[1]!.id) throw new Error('no such order')
    })
    dlq.start()
    const ids = letters.map(({ id }) => id)
    const { out, exit } = await redrive(['retry', ...ids, '--wait', '--store', url])
    await dlq.close()
    expect({ out: out.split('\n').slice(0, 2), exit }).toEqual({
      out: [
        `${ids[0]}  orders  resolved`,
        `${ids[1]}  orders  failed and waits for its next retry`,
      ],
      exit: 1,
    })
  })
})

describe('replay', () => {
  const config = (...lines: string[]): string => {
    const file = join(folder, `${systemClock.id()}.yaml`)
    writeFileSync(file, lines.join('\n'))
    return file
  }
  const source = { kind: 'mailbox', mailbox: 'requests', messageId: 'm-1', deliveries: 5 } as const

  it('publishes to the mailbox in the configuration, and parks at the limit', async () => {
    const letters = [aLetter({ source }), aLetter({ source, replays: 2 })]
    const url = await aStoreFile(folder, letters)
    const ids = letters.map(({ id }) => id)
    const mail = `sqlite:${join(folder, `${systemClock.id()}.db`)}#requests`
    const file = config('maxReplays: 2', 'mailboxes:', `  requests: '${mail}'`)
    const { out, err, exit } = await redrive(['replay', ...ids, '--config', file, '--store', url])
    expect({ out: out.split('\n'), err, exit }).toEqual({
      out: [
        `${ids[0]}  orders  published again`,
        `${ids[1]}  orders  parked at the replay limit`,
        '',
      ],
      err: '',
      exit: 0,
    })
    const mailbox = await openMailbox(mail)
    const messages = await mailbox.receive({ max: 10 })
    expect(messages.map(({ headers }) => headers)).toMatchObject([
      { 'redrive-replays': '1', 'redrive-original-id': 'm-1' },
    ])
    await mailbox.close()
  })

  it('follows the rules of the queue in the configuration', async () => {
    const letters = [aLetter({ source }), aLetter({ source, queue: 'never' })]
    const url = await aStoreFile(folder, letters)
    const ids = letters.map(({ id }) => id)
    const mail = `sqlite:${join(folder, `${systemClock.id()}.db`)}#requests`
    const file = config(
      'confirmReplayMs: 60000',
      'queues: { never: { replay: never } }',
      `mailboxes: { requests: '${mail}' }`,
    )
    const { out, err } = await redrive(['replay', ...ids, '--config', file, '--store', url])
    expect(out).toBe(`${ids[0]}  orders  published again, waiting for confirmation\n`)
    expect(err).toContain('option replay: never')
    const shown = await redrive(['show', ids[0]!, '--store', url])
    expect(shown.out).toContain('parked (replayed)')
    expect(shown.out).toMatch(/replayed +waits for confirmation until \d{4}-/)
  })

  it('exits with 6 when there is no replay route', async () => {
    const letters = [aLetter({ source }), aLetter()]
    const url = await aStoreFile(folder, letters)
    for (const { id } of letters) {
      const { err, exit } = await redrive(['replay', id, '--store', url, '--config', config('')])
      expect({ err, exit }).toEqual({ err: expect.stringContaining('NO_ROUTE'), exit: 6 })
    }
  })
})
