import { Additions } from './additions.ts'
import { Changes } from './changes.ts'
import { Leases } from './leases.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'

/**
 * The history checker. It sees every call at the moment of its effect, holds the answer against the rules of the
 * contract and against what it knows of the letters, and looks at the store itself afterwards.
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
