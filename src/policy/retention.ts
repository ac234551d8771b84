/** Time from resolved or exhausted until archiving, and from archiving until removal. */
export interface Retention {
  archiveAfterMs?: number
  removeAfterMs?: number
}
