import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'

/** The built documentation, as seen from src/server and from dist/server. */
const site = fileURLToPath(new URL('../../dist/docs/', import.meta.url))
const year = 'public, max-age=31536000, immutable'

/**
 * Serves the documentation at `/docs`, if it is built. There is a route for each file that exists
 * when the server starts.
 */
export function serveDocumentation(app: FastifyInstance): void {
  if (!existsSync(`${site}index.html`)) return
  const policy = documentationPolicy(readFileSync(`${site}index.html`, 'utf8'))
  app.register(fastifyStatic, {
    root: site,
    prefix: '/docs/',
    wildcard: false,
    redirect: true,
    decorateReply: false,
    cacheControl: false,
    setHeaders: (reply, path) =>
      void reply.headers({
        'content-security-policy': policy,
        'cache-control': path.startsWith(`${site}assets/`) ? year : 'no-cache',
      }),
  })
}

/**
 * All pages have the same inline scripts, which are allowed by their hashes. Colours of code are in
 * style attributes, and icons of the theme are data URLs in its style sheet.
 */
export function documentationPolicy(html: string): string {
  const hashes = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(
    ([, script]) => `'sha256-${createHash('sha256').update(script!).digest('base64')}'`,
  )
  return [
    "default-src 'self'",
    `script-src 'self' ${hashes.join(' ')}`,
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data:",
    "object-src 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ].join('; ')
}
