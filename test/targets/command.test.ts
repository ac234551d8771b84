import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { commandHandler, type CommandTarget } from '../../src/targets/command.ts'
import { toFailure } from '../../src/letter/failure.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { classifyFailure } from '../../src/policy/classify.ts'
import { aFolder } from '../folders.ts'
import { aRun } from './a-run.ts'

const folder = aFolder('command')

const env = { PATH: process.env['PATH'], SECRET_OF_THE_WORKER: 'hunter2', WANTED: 'yes' }

const handler = (run: string[], rest: Partial<CommandTarget> = {}) =>
  commandHandler({ run, ...rest }, systemClock, env)
/** Runs code with Node. */
const script = (code: string, rest: Partial<CommandTarget> = {}) =>
  handler([process.execPath, '-e', code], rest)

async function failureOf(running: unknown) {
  const thrown: unknown = await Promise.resolve(running).then(
    () => {
      throw new Error('it did not fail')
    },
    (error: unknown) => error,
  )
  const failure = toFailure(thrown, toTimestamp(0))
  return { ...failure, category: classifyFailure(failure, thrown).category }
}

/** Resolves with the contents of a file once it is written. */
async function readWhenWritten(name: string): Promise<string> {
  const path = join(folder, name)
  const watcher = watch(folder)
  try {
    while (!existsSync(path) || readFileSync(path, 'utf8') === '')
      await new Promise((seen) => watcher.once('change', seen))
    return readFileSync(path, 'utf8')
  } finally {
    watcher.close()
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A zombie process counts as dead.
    return !/^\d+ \(.*\) Z /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

describe('commandHandler', () => {
  it('passes the payload on stdin and the facts about the letter in variables', async () => {
    const file = join(folder, 'facts.json')
    const code = `
      const chunks = []
      process.stdin.on('data', (chunk) => chunks.push(chunk)).on('end', () =>
        require('fs').writeFileSync(${JSON.stringify(file)}, JSON.stringify({
          input: Buffer.concat(chunks).toString(), env: process.env })))`
    const { run } = aRun({ order: 42 }, { queue: 'resize-image' })
    expect(await script(code)(run)).toBeUndefined()
    const received = JSON.parse(readFileSync(file, 'utf8')) as { input: string; env: object }
    expect(received.input).toBe('{"order":42}')
    expect(received.env).toMatchObject({
      REDRIVE_LETTER_ID: run.letter.id,
      REDRIVE_QUEUE: 'resize-image',
      REDRIVE_ATTEMPT: '2',
      REDRIVE_IDEMPOTENCY_KEY: `${run.letter.id}:0`,
      REDRIVE_CONTENT_TYPE: 'application/json',
    })
    expect(received.env).not.toHaveProperty('SECRET_OF_THE_WORKER')
    expect(received.env).not.toHaveProperty('WANTED')
  })

  it.each([
    ['contains NUL', 'text/plain;\0a=b', 'text/plain;a=b'],
    ['is longer than a variable may be', `text/plain;${'a'.repeat(200_000)}`, /^text\/plain;a+$/],
  ])('starts the program with a content type that %s', async (_, contentType, expected) => {
    const payload = { ...aRun(1).run.letter.payload, contentType }
    const code = 'console.error(process.env.REDRIVE_CONTENT_TYPE); process.exit(1)'
    const failure = await failureOf(script(code)(aRun(1, { payload }).run))
    expect(failure.message.split(' (')[0]).toMatch(expected)
  })

  it('passes the environment of the worker, or only the named variables', async () => {
    const code =
      'process.exit((process.env.WANTED ? 0 : 10) + (process.env.SECRET_OF_THE_WORKER ? 1 : 0))'
    expect(await script(code, { inheritEnv: ['WANTED'] })(aRun(1).run)).toBeUndefined()
    const failure = await failureOf(script(code, { inheritEnv: true })(aRun(1).run))
    expect(failure.message).toContain('exited with 1')
  })

  it.each<[number, string, string]>([
    [64, 'anything', 'validation'],
    [65, 'anything', 'validation'],
    [75, 'anything', 'transient'],
    [77, 'anything', 'permission'],
    [1, 'connect ECONNREFUSED 10.0.0.1:5432', 'network'],
    [1, 'rate limit exceeded', 'rate-limit'],
    [2, 'something odd', 'unknown'],
  ])('classifies exit code %i with %j on stderr as %s', async (code, words, category) => {
    const failure = await failureOf(
      script(`process.stderr.write(${JSON.stringify(words)}, () => process.exit(${code}))`)(
        aRun(1).run,
      ),
    )
    expect(failure.category).toBe(category)
    expect(failure.message).toContain(words)
    expect(failure.message).toContain(`exited with ${code}`)
  })

  it('keeps the end of a long stderr', async () => {
    const failure = await failureOf(
      script(`process.stderr.write('ä'.repeat(100000) + 'the end', () => process.exit(1))`)(
        aRun(1).run,
      ),
    )
    expect(Buffer.byteLength(failure.message)).toBeLessThan(4200)
    expect(failure.message).toContain('ää')
    expect(failure.message).toContain('the end')
    expect(failure.message).not.toContain('\ufffd')
  })

  it('reports the signal that killed a program', async () => {
    const failure = await failureOf(script(`process.kill(process.pid, 'SIGKILL')`)(aRun(1).run))
    expect(failure.message).toContain('was ended by SIGKILL')
  })

  it('succeeds if the program does not read its input', async () => {
    const { run } = aRun(new Uint8Array(4 * 1024 * 1024))
    expect(await script('process.exit(0)')(run)).toBeUndefined()
  })

  it('passes a large payload completely', async () => {
    const bytes = new Uint8Array(8 * 1024 * 1024).fill(7)
    const code = `
      let sum = 0
      process.stdin.on('data', (chunk) => { sum += chunk.length }).on('end', () =>
        process.exit(sum === ${bytes.length} ? 0 : 1))`
    expect(await script(code)(aRun(bytes).run)).toBeUndefined()
  })

  it('passes arguments and letters without a shell', async () => {
    const file = join(folder, 'injected')
    const evil = `$(touch ${file}); touch ${file} | \`touch ${file}\` && touch ${file}`
    const { run } = aRun(evil, { queue: evil.slice(0, 190) })
    await handler([process.execPath, '-e', '', evil])(run)
    await failureOf(handler([evil])(run))
    expect(existsSync(file)).toBe(false)
  })

  it('reports a missing program, and one that is not executable', async () => {
    expect(await failureOf(handler(['/nowhere/at-all'])(aRun(1).run))).toMatchObject({
      message: 'command not found: /nowhere/at-all',
      code: 'ENOENT',
      category: 'permanent',
    })
    const plain = join(folder, 'plain')
    writeFileSync(plain, 'no program')
    expect(await failureOf(handler([plain])(aRun(1).run))).toMatchObject({ category: 'permission' })
  })

  it('kills the program and its child processes when the run is aborted', async () => {
    const pids = join(folder, 'pids')
    const stubborn = `
      process.on('SIGTERM', () => {})
      require('fs').writeFileSync(${JSON.stringify(pids)}, process.pid + ' ' + process.ppid)
      setInterval(() => {}, 1000)`
    const code = `
      require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(stubborn)}], { stdio: 'inherit' })
      setInterval(() => {}, 1000)`
    const { run, abort } = aRun(1)
    const failed = failureOf(script(code)(run))
    const started = (await readWhenWritten('pids')).split(' ').map(Number)
    expect(started.map(isAlive)).toEqual([true, true])
    abort(new Error('the time is up'))
    expect((await failed).message).toBe('the time is up')
    while (started.some(isAlive)) await new Promise((turn) => void setImmediate(turn))
    expect(started.map(isAlive)).toEqual([false, false])
  })

  it('does not wait for child processes that outlive the program', async () => {
    const code = `
      const child = require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
      require('fs').writeFileSync(${JSON.stringify(join(folder, 'left'))}, String(child.pid))
      process.exit(0)`
    await script(code)(aRun(1).run)
    expect(process.kill(Number(await readWhenWritten('left')), 'SIGKILL')).toBe(true)
  })

  it('starts nothing when the run is already aborted', async () => {
    const { run, abort } = aRun(1)
    abort(new Error('too late'))
    const file = join(folder, 'never')
    await expect(
      script(`require('fs').writeFileSync(${JSON.stringify(file)}, 'x')`)(run),
    ).rejects.toThrow('too late')
    expect(existsSync(file)).toBe(false)
  })
})
