import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
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

  it('listens where the configuration says, without a token if there is an identity provider', async () => {
    const file = join(folder, 'server.yaml')
    writeFileSync(
      file,
      `server:
  host: 0.0.0.0
  port: 0
  publicUrl: http://127.0.0.1:7400
  oidc:
    issuer: http://127.0.0.1:1
    clientId: redrive
    clientSecret: { env: OIDC_SECRET }
`,
    )
    const store = await aStoreFile(folder, [])
    const child = spawn(process.execPath, [main, 'serve', '--config', file, '--store', store], {
      cwd: folder,
      env: { ...plainEnv, OIDC_SECRET: 'hush-1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.push(child)
    let printed = ''
    child.stderr.on('data', (part: Buffer) => (printed += part.toString()))
    for await (const line of createInterface({ input: child.stdout })) {
      printed += line
      const { message, url } = JSON.parse(line) as { message: string; url?: string }
      if (message === 'request failed') break
      if (message !== 'server started') continue
      // Nothing listens at the address of the provider.
      const page = await fetch(new URL('/login/oidc', url!.replace('0.0.0.0', '127.0.0.1')))
      expect(page.status).toBe(503)
      expect(await page.text()).toContain('http://127.0.0.1:1 cannot be reached')
    }
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect(printed).toContain('caused by: TypeError: fetch failed')
    expect(printed).not.toMatch(/rdr_|hush-1/)
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
