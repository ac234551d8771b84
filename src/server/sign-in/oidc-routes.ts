import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { actAs } from '../../admin/audit/caller.ts'
import { hasCode } from '../../errors.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { retryAfter, toProblem } from '../problems.ts'
import { clearCookie, readCookie, setCookie, type CookieOptions } from './cookies.ts'
import { callbackPath, loginMs, type OidcLogin } from './oidc.ts'
import type { SignIn } from './sign-in.ts'

export interface OidcRoutesOptions {
  dlq: DeadLetterQueue
  signIn: SignIn
  oidc: OidcLogin
  publicUrl: string
  onError: (error: unknown, route: string) => void
}

/** Where every login ends. No parameter can change it. */
const startPage = '/'

/**
 * The pages of a login. Browsers open them, so that they are not in the table of endpoints: they
 * answer with redirects, and with a page if something is wrong.
 */
export function addOidcRoutes(app: FastifyInstance, options: OidcRoutesOptions): void {
  const { dlq, signIn, oidc, publicUrl } = options
  // The provider, which is another site, sends the browser back.
  const cookie: CookieOptions = { name: 'redrive-login', sameSite: 'lax', publicUrl }

  const page =
    (answer: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>) =>
    (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
      actAs({ via: 'http' }, () =>
        answer(request, reply).catch((error: unknown) => sendErrorPage(error, reply, options)),
      )

  app.get(
    '/login/oidc',
    { exposeHeadRoute: false },
    page(async (_request, reply) => {
      const { url, cookie: value } = await oidc.begin()
      setCookie(reply, cookie, value, loginMs)
      return reply.redirect(url.href, 302)
    }),
  )

  app.get(
    callbackPath,
    { exposeHeadRoute: false },
    page(async (request, reply) => {
      const { search } = new URL(request.url, publicUrl)
      const value = readCookie(request, cookie)
      // A login is valid once.
      clearCookie(reply, cookie)
      try {
        const caller = await oidc.finish(search, value)
        await signIn.openFor(reply, { caller, method: 'oidc', key: `oidc ${caller.name}` })
      } catch (error) {
        if (hasCode(error, 'UNAUTHENTICATED', 'FORBIDDEN')) {
          const { code, message: reason } = error
          await dlq.recordDenied({ endpoint: callbackPath, action: 'sign-in', code, reason })
        }
        if (hasCode(error, 'UNAUTHENTICATED')) signIn.countFailure(request)
        throw error
      }
      return reply.redirect(startPage, 302)
    }),
  )
}

function sendErrorPage(
  error: unknown,
  reply: FastifyReply,
  { onError }: OidcRoutesOptions,
): FastifyReply {
  const problem = toProblem(error)
  const { method, routeOptions } = reply.request
  if (problem.status >= 500) onError(error, `${method} ${routeOptions.url}`)
  if (problem.status === 429 || problem.status === 503)
    reply.header('retry-after', retryAfter(error))
  return reply.code(problem.status).type('text/html; charset=utf-8').send(`<!doctype html>
<html lang="en">
<meta name="viewport" content="width=device-width">
<title>Sign-in failed</title>
<h1>Sign-in failed</h1>
<p>${escapeHtml(problem.detail)}</p>
<p><a href="/login/oidc">Sign in again</a></p>
</html>
`)
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => `&#${char.codePointAt(0)};`)
}
