import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createSecret } from '../clock/secret.ts'

/** The built dashboard: beside the built server, or in dist if the server runs from its source. */
const folders = ['../web', '../../dist/web'].map((path) => join(import.meta.dirname, path))

const year = 'public, max-age=31536000, immutable'
/** What the build leaves in index.html for the value of each response. */
const noncePlace = '__CSP_NONCE__'

/** Serves the dashboard. */
export class Dashboard {
  readonly #folder = folders.find((folder) => existsSync(join(folder, 'index.html')))
  readonly #html = this.#folder && readFileSync(join(this.#folder, 'index.html'), 'utf8')

  /**
   * There is a route for each file that exists when the server starts, so that no path of a request
   * can name another file. The names of files in `assets/` have a hash of their content.
   */
  addRoutes(app: FastifyInstance): void {
    if (this.#folder === undefined) return
    const assets = join(this.#folder, 'assets/')
    app.get('/', (_request, reply) => this.send(reply))
    app.register(fastifyStatic, {
      root: this.#folder,
      wildcard: false,
      index: false,
      globIgnore: ['index.html'],
      cacheControl: false,
      preCompressed: true,
      setHeaders: (reply, path) =>
        void reply.header('cache-control', path.startsWith(assets) ? year : 'no-cache'),
    })
  }

  /** Whether the request is for a page, which exists in the browser only. */
  has({ method, url, headers }: FastifyRequest): boolean {
    const path = url.split('?', 1)[0]!
    return (
      this.#html !== undefined &&
      method === 'GET' &&
      (/^\/(?!(api|docs)(\/|$))[\w/-]*$/i.test(path) ||
        /^\/(queues|groups|letters)\/[^/]+$/.test(path)) &&
      headers.accept?.includes('text/html') === true
    )
  }

  /** Style elements that the page adds at run time are allowed by a value that nobody can guess. */
  send(reply: FastifyReply): FastifyReply {
    const nonce = createSecret(16)
    return reply
      .type('text/html; charset=utf-8')
      .headers({
        'cache-control': 'no-cache',
        'content-security-policy': contentSecurityPolicy(`'nonce-${nonce}'`),
      })
      .send(this.#html!.replace(noncePlace, nonce))
  }
}

/** Only what this server serves. `styles` are sources of styles besides. */
export function contentSecurityPolicy(styles = ''): string {
  return [
    "default-src 'self'",
    `style-src 'self' ${styles}`.trimEnd(),
    "object-src 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ].join('; ')
}
