/** Keeps cookies by host, as a browser does, and sends no header that it is not given. */
export class Browser {
  readonly cookies = new Map<string, string>()
  /** The attributes of each cookie, as the server has sent them. */
  readonly attributes = new Map<string, string>()

  async fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(url)
    const cookie = [...this.cookies]
      .filter(([key]) => key.startsWith(`${host} `))
      .map(([key, value]) => `${key.slice(host.length + 1)}=${value}`)
      .join('; ')
    const headers = { ...(init.headers as object), ...(cookie === '' ? {} : { cookie }) }
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) this.#keep(host, line)
    return response
  }

  #keep(host: string, line: string): void {
    const [, name, value, attributes = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(line)!
    const key = `${host} ${name}`
    const isRemoved = /expires=Thu, 01 Jan 1970/i.test(attributes) || /max-age=0/i.test(attributes)
    if (isRemoved) this.cookies.delete(key)
    else this.cookies.set(key, value!)
    this.attributes.set(name!, attributes)
  }

  /** Sends a JSON body, as the dashboard does. */
  send(url: string, method: string, body?: object, headers: object = {}): Promise<Response> {
    return this.fetch(url, {
      method,
      headers: {
        'x-redrive-csrf': '1',
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  }
}
