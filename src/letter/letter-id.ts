const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a letter can have this id: a UUID in lower case, of which stores keep the 16 bytes. */
export function isLetterId(id: string): boolean {
  return id.length === 36 && uuid.test(id)
}
