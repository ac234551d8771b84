import type { CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * A cookie of this server. With https it has a name that browsers accept only from exactly this
 * host with https, so that no other host of the domain can set it.
 */
export interface CookieOptions {
  name: string
  /** `strict`: other sites can never make a browser send it. `lax`: they may link to the server. */
  sameSite: 'strict' | 'lax'
  publicUrl: string | undefined
}

export function readCookie(request: FastifyRequest, options: CookieOptions): string | undefined {
  return request.cookies[nameOf(request, options)]
}

export function setCookie(
  reply: FastifyReply,
  options: CookieOptions,
  value: string,
  ageMs: number,
): void {
  const { request } = reply
  const maxAge = Math.max(0, Math.floor(ageMs / 1000))
  reply.setCookie(nameOf(request, options), value, { ...attributesOf(request, options), maxAge })
}

export function clearCookie(reply: FastifyReply, options: CookieOptions): void {
  const { request } = reply
  reply.clearCookie(nameOf(request, options), attributesOf(request, options))
}

function nameOf(request: FastifyRequest, options: CookieOptions): string {
  return isSecure(request, options) ? `__Host-${options.name}` : options.name
}

function attributesOf(request: FastifyRequest, options: CookieOptions): CookieSerializeOptions {
  const { sameSite } = options
  return { path: '/', httpOnly: true, sameSite, secure: isSecure(request, options) }
}

function isSecure({ protocol }: FastifyRequest, { publicUrl }: CookieOptions): boolean {
  return protocol === 'https' || publicUrl?.startsWith('https:') === true
}
