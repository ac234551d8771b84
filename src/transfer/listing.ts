/** The first entries of a list, and the number of all entries. */
export interface Listing<T> {
  first: T[]
  count: number
}

const maxListed = 20

export const emptyListing = <T>(): Listing<T> => ({ first: [], count: 0 })

export function addTo<T>(all: Listing<T>, one: T): void {
  if (all.first.length < maxListed) all.first.push(one)
  all.count += 1
}
