/** Who uses the server: what its failures are called, and the words they are told in. */
export interface Tenant {
  noun: 'store' | 'mailbox'
  unavailable: 'STORE_UNAVAILABLE' | 'MAILBOX_UNAVAILABLE'
  /** What it keeps there, in the plural. */
  keeps: string
  /** Where it stands which rights it needs. */
  page: string
  /** What holds when too few replicas took a write. */
  tooFewReplicas: string
}
