import { dumpApi, dumpRaw } from './dump.ts'
import { judge } from './judge.ts'
import { readLedgers } from './ledger.ts'

/** The offline checker: `node check.ts LEDGERS STORE LEASE_MS` prints what they say, as JSON. */
const [ledgers, store, leaseMs] = process.argv.slice(2)
if (ledgers === undefined || store === undefined || leaseMs === undefined) {
  process.stderr.write('usage: node check.ts LEDGERS STORE LEASE_MS\n')
  process.exit(2)
}
const raw = await dumpRaw(store)
const api = await dumpApi(store)
const judgement = judge({ lines: readLedgers(ledgers), raw, api, leaseMs: Number(leaseMs) })
process.stdout.write(JSON.stringify(judgement))
