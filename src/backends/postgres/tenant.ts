/** Who uses the server: its name in messages, and the error code of an outage. */
export interface Tenant {
  noun: 'store' | 'mailbox'
  unavailable: 'STORE_UNAVAILABLE' | 'MAILBOX_UNAVAILABLE'
}
