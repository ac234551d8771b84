/** Strings that identify an action in a trace. None is a prefix of another. */
const formatMarker = (word: string, n: number): string => `${word}-${String(n).padStart(4, '0')}.`

/** Part of what a capture writes. */
export const captureMarker = (n: number): string => formatMarker('capture', n)
/** Part of what a settle writes. */
export const settleMarker = (n: number): string => formatMarker('settle', n)
/** Printed or sent once the action with this marker was acknowledged. */
export const acknowledgedMarker = (marker: string): string => `acknowledged:${marker}`
