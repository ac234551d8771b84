/** What work may return to say that it failed without throwing. */
export interface FailedResult {
  ok: false
  error: unknown
}

export function isFailedResult(value: unknown): value is FailedResult {
  try {
    return typeof value === 'object' && value !== null && (value as { ok?: unknown }).ok === false
  } catch {
    // A proxy that throws says nothing about success.
    return false
  }
}
