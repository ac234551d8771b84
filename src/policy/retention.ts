/** How long letters stay: the first from resolved or exhausted to the archive, the second from the archive to nowhere. */
export interface Retention {
  archiveAfterMs?: number
  removeAfterMs?: number
}
