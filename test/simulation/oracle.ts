import { Additions } from './additions.ts'
import { Changes } from './changes.ts'
import { Leases } from './leases.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'

/**
 * The history checker. It observes every call when it takes effect, compares the answer with the
 * contract and the expected letters, and then reads the store itself.
 */
export class Oracle {
  readonly ledger: Ledger
  readonly additions: Additions
  readonly leases: Leases
  readonly changes: Changes

  constructor(options: LedgerOptions) {
    this.ledger = new Ledger(options)
    this.additions = new Additions(this.ledger)
    this.leases = new Leases(this.ledger)
    this.changes = new Changes(this.ledger)
  }
}
