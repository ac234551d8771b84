/** Who uses the server: its name and words in messages, and the error code of an outage. */
export interface Tenant {
  noun: 'store' | 'mailbox'
  unavailable: 'STORE_UNAVAILABLE' | 'MAILBOX_UNAVAILABLE'
  /** What it stores, in the plural. */
  keeps: string
  /** The docs page with the permissions that it needs. */
  page: string
  /** The state of a write that too few replicas confirmed. */
  tooFewReplicas: string
}
