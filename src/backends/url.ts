import { RedriveError, type ErrorCode } from '../errors.ts'
import { checkKeys } from '../check/keys.ts'

/**
 * Returns the parameters of a URL after `?` by name. Rejects a name that is not in `known`; the
 * error has the nearest known name. `thing` is the kind of URL, as in "Redis URL".
 */
export function urlSettings<K extends string>(
  thing: string,
  query: URLSearchParams,
  known: readonly K[],
  code: ErrorCode = 'INVALID_INPUT',
): Partial<Record<K, string>> {
  const settings = Object.fromEntries(query)
  // After an unescaped `?` may follow the rest of a password, so messages repeat names only.
  if (Object.keys(settings).some((name) => !/^[\w.-]{1,64}$/.test(name)))
    throw new RedriveError(
      code,
      `the part after ? of a ${thing} must be parameters, as in ?name=value&other=value; write a ? in a password as %3F`,
    )
  checkKeys(thing, settings, known, { code })
  return settings as Partial<Record<K, string>>
}

/** The unparsed parameters of a URL that the platform cannot parse. */
export function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '')
}

/**
 * The file of a `sqlite:` URL, possibly empty; undefined for any other URL. Parameters start at
 * `?`. After two slashes comes a host, but a file has none: some read `sqlite://x.db` as a file in
 * this folder, others as one at the root of the disk.
 */
export function sqliteFileOf(url: string): string | undefined {
  const rest = /^sqlite:([^?]*)/i.exec(url)?.[1]
  const host = rest === undefined ? undefined : /^\/\/([^/].*)$/s.exec(rest)?.[1]
  if (host !== undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      `sqlite://${host} is ambiguous: write sqlite:${host} for a file in this folder, or sqlite:/${host} for one at the root of the disk`,
    )
  return rest?.replace(/^\/\/(?=\/)/, '')
}

/** Decodes percent-encoding, or returns the string unchanged if it is invalid. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
