import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** The built dashboard. Its `assets/` have a hash of their content in their names. */
const dashboard = fileURLToPath(new URL('../web/', import.meta.url))
/** One page that shows the newest letters. It is served until the dashboard is built. */
const page = fileURLToPath(new URL('./page/', import.meta.url))

const year = 'public, max-age=31536000, immutable'

/**
 * Serves the files of the web page at `/`. There is a route for each file that exists when the
 * server starts, so that no path of a request can name another file.
 */
export function serveStaticFiles(app: FastifyInstance): void {
  const root = existsSync(`${dashboard}index.html`) ? dashboard : page
  app.register(fastifyStatic, {
    root,
    wildcard: false,
    cacheControl: false,
    setHeaders: (reply, path) =>
      void reply.header(
        'cache-control',
        path.startsWith(`${dashboard}assets/`) ? year : 'no-cache',
      ),
  })
}

/** The routes of the web page exist in the browser: for the server, all of them are the page. */
export function isPageRequest({ method, url, headers }: FastifyRequest): boolean {
  const path = url.split('?', 1)[0]!
  return (
    method === 'GET' &&
    !/^\/api(\/|$)/i.test(path) &&
    /^\/[\w/-]*$/.test(path) &&
    headers.accept?.includes('text/html') === true
  )
}

export function sendPage(reply: FastifyReply): FastifyReply {
  return reply.sendFile('index.html')
}
