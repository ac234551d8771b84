import { afterAll, describe } from 'vitest'
import { runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { runAgreement } from '../run-agreement.ts'
import { backend } from '../../servers/servers.ts'
import { Indices } from './opensearch-bench.ts'

const server = backend('opensearch')

describe.skipIf(server.missing)('on a real server', () => {
  const indices = new Indices(server.url)
  afterAll(() => indices.remove())
  runStoreContract('openSearchStore', () => indices.open())
  runStoreModel('openSearchStore', (clock) => indices.open(clock), {
    numRuns: atDepth(2, 6),
  })
  runAgreement('openSearchStore', (clock) => indices.open(clock), 1)
})
