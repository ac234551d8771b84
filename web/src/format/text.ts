/** The start and the end of an id: people compare these, and the whole is in the copy. */
export function shortenId(id: string): string {
  return id.length <= 14 ? id : `${id.slice(0, 4)}…${id.slice(-6)}`
}

export function firstLine(text: string): string {
  const end = text.search(/[\r\n]/)
  return end === -1 ? text : text.slice(0, end)
}

/** Names of enumerations as words: `rate-limit` is `rate limit`. */
export function toWords(name: string): string {
  return name.replaceAll('-', ' ')
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
