import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../src/api/client.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { aFolder, aStoreFile, plainEnv, redrive } from '../run-cli.ts'

const main = join(import.meta.dirname, '../../../src/cli/main.ts')
const folder = aFolder()

const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

interface Started {
  child: ChildProcess
  url: string
  token: string
}

/** Starts a server on a free port, and reads its address and its token. */
async function serve(args: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', ...args], {
    cwd: folder,
    env: plainEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let url: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    const { message, url: address } = JSON.parse(line) as { message: string; url?: string }
    if (message !== 'server started') continue
    url = address
    break
  }
  for await (const line of createInterface({ input: child.stderr })) {
    const token = /rdr_[\w-]+/.exec(line)?.[0]
    if (url !== undefined && token !== undefined) return { child, url, token }
  }
  throw new Error('the server ended before it printed its token')
}

describe('serve', () => {
  it('serves the letters of a store to its token, and stops on SIGTERM', async () => {
    const letter = aLetter()
    const store = await aStoreFile(folder, [letter])
    const { child, url, token } = await serve(['--store', store])
    const client = createClient({ url, token })
    expect((await client.listLetters()).items.map(({ id }) => id)).toEqual([letter.id])
    expect(await client.getReadiness()).toEqual({ ok: true })
    const stranger = createClient({ url, token: token.replace(/.$/, '!') })
    await expect(stranger.listLetters()).rejects.toMatchObject({ problem: { status: 401 } })
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('serves its metrics, which measure the store by default', async () => {
    const store = await aStoreFile(folder, [aLetter({ queue: 'mail' })])
    const { child, url, token } = await serve(['--store', store])
    const metrics = await createClient({ url, token }).scrapeMetrics()
    expect(metrics).toContain('redrive_letters{queue="mail",state="pending"} 1')
    expect(metrics).toMatch(/^redrive_store_call_duration_seconds_count\{method="\w+"\} [1-9]/m)
    expect(metrics).toMatch(/^nodejs_eventloop_lag_seconds /m)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it.each([
    [['--host', '0.0.0.0'], 'is not a loopback address'],
    [['--port', '99999'], '--port must be a number from 0 to 65535'],
    [['--store', 'memory:'], 'loses its letters'],
  ])('refuses %j', async (args, message) => {
    const { err, exit } = await redrive(['serve', ...args], { cwd: folder })
    expect(err).toContain(message)
    expect(exit).toBe(2)
  })
})
