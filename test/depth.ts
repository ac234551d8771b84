/**
 * Whether the tests run in full, as `npm run deep` does. `npm test` runs each contract in full once
 * per driver, and repeats it on variants, random inputs and real processes only as often as finds
 * an ordinary mistake.
 */
export const isDeep: boolean = process.env['REDRIVE_TEST_DEEP'] === '1'

/** The first value in `npm test`, the second one in `npm run deep`. */
export function atDepth<T>(quick: T, deep: T): T {
  return isDeep ? deep : quick
}
