export { aLetter } from './a-letter.ts'
export { fakeClock, type FakeClock } from './fake-clock.ts'
export { storeContract } from './store/contract.ts'
export type { StoreBench, StoreCheck } from './store/check.ts'
