import { dumpApi, dumpRaw } from './dump.ts'
import { verify } from './verify.ts'
import { readLedgers } from './ledger.ts'

/** The offline verifier: `node check.ts LEDGERS STORE LEASE_MS` prints the findings as JSON. */
const [ledgers, store, leaseMs] = process.argv.slice(2)
if (ledgers === undefined || store === undefined || leaseMs === undefined) {
  process.stderr.write('usage: node check.ts LEDGERS STORE LEASE_MS\n')
  process.exit(2)
}
const raw = await dumpRaw(store)
const api = await dumpApi(store)
const findings = verify({ lines: readLedgers(ledgers), raw, api, leaseMs: Number(leaseMs) })
process.stdout.write(JSON.stringify(findings))
