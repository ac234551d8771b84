/** Who uses the server: what its failures are called, and by which word it is told of. */
export interface Tenant {
  noun: 'store' | 'mailbox'
  unavailable: 'STORE_UNAVAILABLE' | 'MAILBOX_UNAVAILABLE'
}
