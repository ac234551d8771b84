export { aLetter } from './a-letter.ts'
export {
  checkCorpus,
  corpus,
  type CorpusCase,
  type CorpusExpectation,
  type CorpusMismatch,
} from './corpus/corpus.ts'
export { reviveError, type ErrorShape } from './corpus/revive.ts'
export { fakeClock, type FakeClock } from './fake-clock.ts'
export { mailboxContract } from './mailbox/contract.ts'
export type { MailboxBench, MailboxCheck } from './mailbox/check.ts'
export {
  testMailbox,
  type SentMessage,
  type SettledMessage,
  type TestMailbox,
  type TestMailboxOperation,
  type TestMailboxOptions,
} from './test-mailbox.ts'
export { storeContract } from './store/contract.ts'
export type { StoreBench, StoreCheck } from './store/check.ts'
