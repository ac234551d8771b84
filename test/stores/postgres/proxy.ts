import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Stands between a store and its server, and cuts a connection when it is told to. */
export interface Proxy {
  readonly url: string
  /** The next connection that sends these bytes is cut. `after`: once the server has answered them, unheard. */
  cutAt(words: string, when: 'before' | 'after'): void
  /** Cuts all connections there are. */
  cutAll(): void
  close(): Promise<void>
}

export async function openProxy(target: string): Promise<Proxy> {
  const to = new URL(target)
  const port = Number(to.port)
  const sockets = new Set<Socket>()
  let cut: { words: string; when: 'before' | 'after' } | undefined
  const server = createServer((client) => {
    const upstream = connect(port, to.hostname)
    let deaf = false
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
        sockets.delete(socket)
      })
    }
    client.on('data', (bytes) => {
      const hit = cut !== undefined && bytes.includes(cut.words)
      if (hit && cut!.when === 'before') client.destroy()
      else upstream.write(bytes)
      deaf ||= hit
      if (hit) cut = undefined
    })
    upstream.on('data', (bytes) => (deaf ? client.destroy() : client.write(bytes)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  to.port = String((server.address() as AddressInfo).port)
  const cutAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    url: to.href,
    cutAll,
    cutAt: (words, when) => void (cut = { words, when }),
    close: async () => {
      cutAll()
      server.close()
      await once(server, 'close')
    },
  }
}
