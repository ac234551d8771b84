/** What stands one behind the other and belongs together: `goesOn` says whether the one that is so far behind the first does. */
export function* runsOf<T>(
  all: readonly T[],
  goesOn: (first: T, other: T, by: number) => boolean,
): Generator<T[]> {
  for (let from = 0, end = 0; from < all.length; from = end) {
    while (end < all.length && goesOn(all[from]!, all[end]!, end - from)) end += 1
    yield all.slice(from, end)
  }
}
