import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { findProgram } from '../../scripts/servers/machine.ts'
import { aFolder } from '../folders.ts'
import { runSync } from '../processes.ts'
import { connectStore } from './backends.ts'
import { outcomeOf } from './outcome.ts'

/** URLs that require TLS. Postgres first asks in plain text whether the server supports TLS. */
const encryptedUrls: [name: string, url: (port: number) => string, asksFirst: boolean][] = [
  ['postgres', (port) => `postgres://app:secret@localhost:${port}/db?sslmode=verify-full`, true],
  ['redis', (port) => `rediss://app:secret@localhost:${port}`, false],
  ['opensearch', (port) => `opensearchs://app:secret@localhost:${port}/letters`, false],
]

const openssl = findProgram('openssl')

const folder = aFolder('certificate')

/** A self-signed certificate. */
function createSelfSigned(): { key: Buffer; cert: Buffer } {
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
  const options = [
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '30',
    '-subj',
    '/CN=localhost',
  ]
  runSync(openssl!, ['req', ...options, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  return { key: readFileSync(key), cert: readFileSync(cert) }
}

describe.each(encryptedUrls)('a store on %s that requires TLS', (_, url, asksFirst) => {
  let server: Server
  let sockets: Socket[]

  async function listen(newServer: Server): Promise<number> {
    sockets = []
    server = newServer.on('connection', (socket: Socket) => {
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

  it('sends no data in plain text to a server without TLS', async () => {
    let received = ''
    const port = await listen(
      createServer((socket) => {
        socket.on('data', (data: Buffer) => {
          received += data.toString('latin1')
        })
        socket.once('data', () => socket.end(asksFirst ? 'N' : '-ERR what is this\r\n'))
      }),
    )
    const store = await connectStore(url(port))
    const { error } = await outcomeOf(store.open())
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
    expect(error!.message).not.toContain('secret')
    await store.close()
    expect(received).not.toMatch(/secret|app|AUTH|Authorization|letters/)
    // Either the question of Postgres (0) or a TLS ClientHello (22).
    expect(received.charCodeAt(0)).toBe(asksFirst ? 0 : 22)
  })

  it.skipIf(!openssl)('sends no data under a self-signed certificate', async () => {
    let received = ''
    const recordData = (socket: TLSSocket): void => {
      socket.on('error', () => {})
      socket.on('data', (data: Buffer) => {
        received += data.toString('latin1')
      })
    }
    const identity = createSelfSigned()
    const postgresTls = createServer((socket) => {
      socket.once('data', () =>
        socket.write('S', () => recordData(new TLSSocket(socket, { isServer: true, ...identity }))),
      )
    })
    const port = await listen(asksFirst ? postgresTls : createTlsServer(identity, recordData))
    const store = await connectStore(url(port))
    const { error } = await outcomeOf(store.open())
    expect(error).toMatchObject({ code: 'INVALID_CONFIG' })
    expect(error!.message).toMatch(/certificate/i)
    await store.close()
    expect(received).toBe('')
  })
})
