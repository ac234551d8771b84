import { escaped } from './naming.ts'

/** Names of topics may have 249 characters; a prefix has up to 60 of them. */
const maxLength = 180

/** The topic of a mailbox, and also its consumer group. */
export function topicOf(prefix: string, name: string): string {
  return `${prefix}${escaped(name, maxLength)}`
}
