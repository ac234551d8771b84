/** Property names that every plain object inherits. */
export const hostileNames = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
] as const
