/** Any value as a short string for a message. Never throws. */
export function inWords(thrown: unknown): string {
  try {
    return String(thrown).slice(0, 80)
  } catch {
    return `a value that cannot be printed (${typeof thrown})`
  }
}
