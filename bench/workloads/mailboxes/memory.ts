import { memoryMailbox } from '../../../src/mailboxes/memory/memory.ts'
import type { Pair } from './pair.ts'

export async function open(): Promise<Pair> {
  const mailbox = memoryMailbox({ name: 'bench' })
  await mailbox.open()
  return { mailbox, close: () => mailbox.close() }
}
