/** A value as a line of JSON Lines. */
export function toLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}
