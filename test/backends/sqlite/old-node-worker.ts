// Fails like node:sqlite on an older Node.
// @ts-expect-error -- there is no such module
await import('node:sqlite_of_tomorrow')
