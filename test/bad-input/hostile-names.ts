/** Names that every plain object answers to, though nobody put them there. */
export const hostileNames = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
] as const
