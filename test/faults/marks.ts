/** Texts by which an act is found in a trace. None is the beginning of another. */
const numbered = (word: string, n: number): string => `${word}-${String(n).padStart(4, '0')}.`

/** In what a capture writes. */
export const markOf = (n: number): string => numbered('capture', n)
/** In what a settle writes. */
export const settleMarkOf = (n: number): string => numbered('settle', n)
/** What is said once the act with this mark was acknowledged. */
export const toldOf = (mark: string): string => `told:${mark}`
