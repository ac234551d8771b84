/** Anything that was thrown, as a short text for a note. Never throws, whatever it is given. */
export function inWords(thrown: unknown): string {
  try {
    return String(thrown).slice(0, 80)
  } catch {
    return `something that cannot be shown (${typeof thrown})`
  }
}
