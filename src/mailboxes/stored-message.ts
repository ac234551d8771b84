import type { OutgoingMessage } from '../mailbox.ts'

/** The stored fields of a message besides its id and its bytes. */
export function aboutOf({ contentType, headers, replyTo }: OutgoingMessage): string {
  return JSON.stringify({ contentType, headers, replyTo })
}

export function toOutgoingMessage(id: string, about: string, bytes: Uint8Array): OutgoingMessage {
  return { id, bytes, ...(JSON.parse(about) as Omit<OutgoingMessage, 'id' | 'bytes'>) }
}
