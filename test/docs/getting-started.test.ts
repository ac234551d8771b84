import { mkdirSync, symlinkSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { plainEnv } from '../cli/run-cli.ts'
import { aFolder } from '../folders.ts'
import { followPage } from './follow-page.ts'

const root = join(import.meta.dirname, '../..')
const folder = aFolder('redrive-getting-started')

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A folder for packages, as `npm install` leaves it, without its downloads. */
function installHere(): void {
  const bin = join(folder, 'letters/node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(root, join(folder, 'letters/node_modules/redrive'))
  symlinkSync(join(root, 'dist/cli/main.js'), join(bin, 'redrive'))
}

describe('the first ten minutes', () => {
  // `npm run newcomer` follows the page with the packed package, and installs it.
  it('are as docs/getting-started.md describes them', { timeout: 300_000 }, async ({ signal }) => {
    installHere()
    const following = followPage('docs/getting-started.md', {
      folder,
      env: {
        ...plainEnv,
        PATH: [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
      },
      replace: [
        ['mkdir letters', 'mkdir -p letters'],
        ['npm install redrive', 'true'],
        ['4000', String(await freePort())],
      ],
      signal,
    })
    await expect(following).resolves.toBeUndefined()
  })
})
