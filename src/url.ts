import { RedriveError } from './errors.ts'

/**
 * The file that a `sqlite:` URL names, which may be none; undefined for any other URL. Behind two slashes stands a host, and a file has none: for some
 * `sqlite://x.db` is a file in this folder, for others one at the root of the disk.
 */
export function sqliteFileOf(url: string): string | undefined {
  const rest = /^sqlite:(.*)$/is.exec(url)?.[1]
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
