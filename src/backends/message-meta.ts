/** What the `Redrive` header or attribute of a message contains as JSON, in every mailbox. */
export interface MessageMeta {
  id: string
  type: string
  replyTo?: string
}

/**
 * Parses the meta of a message. Anybody may write it: undefined if it is missing or invalid.
 * `isValid` checks the fields that `T` adds.
 */
export function parseMeta<T extends MessageMeta>(
  json: string | undefined,
  isValid: (meta: Record<string, unknown>) => boolean,
): T | undefined {
  try {
    const meta = JSON.parse(json ?? '') as Record<string, unknown>
    const { id, type, replyTo = '' } = meta
    const isMeta = [id, type, replyTo].every((field) => typeof field === 'string')
    return isMeta && isValid(meta) ? (meta as unknown as T) : undefined
  } catch {
    return undefined
  }
}

export function isStringRecord(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((one) => typeof one === 'string')
}
