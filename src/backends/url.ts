import { RedriveError, type ErrorCode } from '../errors.ts'
import { checkKeys } from '../check/keys.ts'

/**
 * The settings behind `?` of a URL, by name. Rejects a name outside of `known`; the error has the known name nearest to it.
 * `thing` says what the URL is of, as in "Redis URL".
 */
export function urlSettings<K extends string>(
  thing: string,
  query: URLSearchParams,
  known: readonly K[],
  code: ErrorCode = 'INVALID_INPUT',
): Partial<Record<K, string>> {
  const settings = Object.fromEntries(query)
  // Behind a `?` that was not escaped may stand the rest of a password, so only names are repeated in messages.
  if (Object.keys(settings).some((name) => !/^[\w.-]{1,64}$/.test(name)))
    throw new RedriveError(
      code,
      `what stands behind ? of a ${thing} must be settings, as in ?name=value&other=value; a ? in a password is written %3F`,
    )
  checkKeys(thing, settings, known, { code })
  return settings as Partial<Record<K, string>>
}

/** The settings behind `?`, unread, of a URL that the platform does not read as one. */
export function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '')
}

/**
 * The file that a `sqlite:` URL names, which may be none; undefined for any other URL. A `?` begins its settings. Behind two slashes stands a host, and a file has none: for some
 * `sqlite://x.db` is a file in this folder, for others one at the root of the disk.
 */
export function sqliteFileOf(url: string): string | undefined {
  const rest = /^sqlite:([^?]*)/i.exec(url)?.[1]
  const host = rest === undefined ? undefined : /^\/\/([^/].*)$/s.exec(rest)?.[1]
  if (host !== undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      `sqlite://${host} is not clear: write sqlite:${host} for a file in this folder, or sqlite:/${host} for one at the root of the disk`,
    )
  return rest?.replace(/^\/\/(?=\/)/, '')
}

/** A part of a URL as it is meant: with its escapes resolved, or as it stands when it has none that are right. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
