// What an older Node says of node:sqlite.
// @ts-expect-error -- there is no such module
await import('node:sqlite_of_tomorrow')
