const pattern =
  /^v?(\d{1,15})\.(\d{1,15})\.(\d{1,15})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?$/

/** Compares two versions by semver precedence. Undefined: one of them is not a semver version. */
export function compareVersions(a: string, b: string): number | undefined {
  const [one, other] = [pattern.exec(a), pattern.exec(b)]
  if (!one || !other) return undefined
  for (const at of [1, 2, 3]) {
    const order = Number(one[at]) - Number(other[at])
    if (order !== 0) return order
  }
  return comparePrereleases(one[4], other[4])
}

/** A version without a prerelease part comes after those with one. */
function comparePrereleases(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  const [one, other] = [a.split('.'), b.split('.')]
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    const order = compareIdentifiers(one[at]!, other[at]!)
    if (order !== 0) return order
  }
  return one.length - other.length
}

/** Numbers come before words, and are compared as numbers of any length. */
function compareIdentifiers(a: string, b: string): number {
  const isNumber = (part: string): boolean => /^\d+$/.test(part)
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1 : 1
  if (isNumber(a) && a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}
