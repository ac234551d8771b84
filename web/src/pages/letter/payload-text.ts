import type { InputOf, PayloadView } from 'redrive/api'

type Edit = Pick<InputOf<'editLetter'>, 'json' | 'text' | 'contentType'>
type Json = PayloadView['json']

/** The payload as text for people. Undefined: it is not text, or hidden. */
export function payloadText({
  json,
  text,
}: Pick<PayloadView, 'json' | 'text'>): string | undefined {
  return json === undefined ? text : JSON.stringify(json, null, 2)
}

/**
 * The text that an editor starts with. Undefined: there is none, or saving it would store markers
 * in place of values that are only hidden from the reader.
 */
export function editableText(payload: PayloadView, isRevealed: boolean): string | undefined {
  return payload.redacted && !isRevealed ? undefined : payloadText(payload)
}

/** What an edited text is as an edit, or why it cannot be one. */
export function parseEdited(
  { json, contentType }: PayloadView,
  text: string,
): { value?: Edit; error?: string } {
  if (json === undefined) return { value: { text, contentType } }
  try {
    return { value: { json: JSON.parse(text) as NonNullable<Json>, contentType } }
  } catch (error) {
    return { error: `This is not valid JSON: ${error instanceof Error ? error.message : 'error'}` }
  }
}
