import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { Browser } from './a-browser.ts'

export const clientId = 'redrive'
export const clientSecret = 'a secret of this server at the provider'

/** An HTTP server whose address is known before what it serves. */
export class Front {
  readonly #server: Server
  listener: RequestListener | undefined
  /** True: every connection is ended without an answer. */
  isDown = false
  /** Paths that were requested. */
  readonly paths: string[] = []

  private constructor(server: Server) {
    this.#server = server
    server.on('request', (request, response) => {
      this.paths.push(request.url!)
      if (this.isDown || !this.listener) request.socket.destroy()
      else this.listener(request, response)
    })
  }

  static async listen(): Promise<Front> {
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    return new Front(server)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => void this.#server.close(resolve))
  }
}

/** The people whom the provider knows, by their login. */
export type People = Record<string, Record<string, unknown>>

/** An OpenID Connect provider. Its forms accept any password. */
export async function aProvider(redirectUrl: string, people: People): Promise<Front> {
  const front = await Front.listen()
  const provider = new Provider(front.url, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUrl] }],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['role', 'groups', 'queues'],
    },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, ...people[sub] }),
    }),
    cookies: { keys: ['a key of the cookies'] },
    features: { devInteractions: { enabled: true } },
  })
  const answer = provider.callback()
  front.listener = (request, response) => void answer(request, response)
  return front
}

/** Follows redirects and fills in the forms of the provider, until the address is `end`. */
export async function signInAt(
  browser: Browser,
  start: URL,
  login: string,
  end: string,
): Promise<URL> {
  let url = start
  // Sign-in and consent have three steps each.
  for (let step = 0; step < 12; step++) {
    if (url.href.startsWith(end)) return url
    let response = await browser.fetch(url)
    if (response.status === 200) {
      const page = await response.text()
      const [, action] = /<form[^>]* action="([^"]+)"/.exec(page)!
      const [, prompt] = /name="prompt" value="(\w+)"/.exec(page)!
      const fields = { prompt: prompt!, ...(prompt === 'login' ? { login, password: 'x' } : {}) }
      response = await browser.fetch(new URL(action!, url), {
        method: 'POST',
        body: new URLSearchParams(fields).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
    }
    url = new URL(response.headers.get('location')!, url)
  }
  throw new Error(`the sign-in did not end, but came to ${url.href}`)
}
