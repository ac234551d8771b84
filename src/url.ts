/** A part of a URL as it is meant: with its escapes resolved, or as it stands when it has none that are right. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
