import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { findProgram } from '../../scripts/servers/machine.ts'
import { connected } from './backends.ts'
import { outcomeOf } from './outcome.ts'

/** URLs that ask for encryption. Postgres asks in the clear whether it may begin; the others just begin. */
const asking: [name: string, url: (port: number) => string, asksFirst: boolean][] = [
  ['postgres', (port) => `postgres://app:secret@localhost:${port}/db?sslmode=verify-full`, true],
  ['redis', (port) => `rediss://app:secret@localhost:${port}`, false],
  ['opensearch', (port) => `opensearchs://app:secret@localhost:${port}/letters`, false],
]

const openssl = findProgram('openssl')

/** A certificate that nobody vouches for. */
function selfSigned(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-'))
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
  const what = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-subj', '/CN=localhost']
  try {
    execFileSync(openssl!, ['req', ...what, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    return { key: readFileSync(key), cert: readFileSync(cert) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe.each(asking)(
  'a store on %s that is to be reached under encryption',
  (_, url, asksFirst) => {
    let server: Server
    let sockets: Socket[]

    async function listen(made: Server): Promise<number> {
      sockets = []
      server = made.on('connection', (socket: Socket) => {
        sockets.push(socket)
        socket.on('error', () => {})
      })
      server.listen(0, 'localhost')
      await once(server, 'listening')
      return (server.address() as AddressInfo).port
    }
    afterEach(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })

    it('says nothing in the clear to a server that has none', async () => {
      let heard = ''
      const port = await listen(
        createServer((socket) => {
          socket.on('data', (said) => {
            heard += said.toString('latin1')
          })
          socket.once('data', () => socket.end(asksFirst ? 'N' : '-ERR what is this\r\n'))
        }),
      )
      const store = await connected(url(port))
      const { error } = await outcomeOf(store.open())
      expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
      expect(error!.message).not.toContain('secret')
      await store.close()
      expect(heard).not.toMatch(/secret|app|AUTH|Authorization|letters/)
      // It asked, or said hello in TLS.
      expect(heard.charCodeAt(0)).toBe(asksFirst ? 0 : 22)
    })

    it.skipIf(!openssl)('says nothing under a certificate that nobody vouches for', async () => {
      let heard = ''
      const listening = (socket: TLSSocket): void => {
        socket.on('error', () => {})
        socket.on('data', (said) => {
          heard += said.toString('latin1')
        })
      }
      const identity = selfSigned()
      const polite = createServer((socket) => {
        socket.once('data', () =>
          socket.write('S', () =>
            listening(new TLSSocket(socket, { isServer: true, ...identity })),
          ),
        )
      })
      const port = await listen(asksFirst ? polite : createTlsServer(identity, listening))
      const store = await connected(url(port))
      const { error } = await outcomeOf(store.open())
      expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
      expect(error!.message).toMatch(/certificate/i)
      await store.close()
      expect(heard).toBe('')
    })
  },
)
