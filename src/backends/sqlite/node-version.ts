/**
 * The oldest Node of each major version with SQLite 3.51.3 or newer. Other major versions are too
 * old, or newer than all of these.
 */
const oldest: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [22, 22, 3],
  [24, 15, 0],
  [25, 8, 1],
]

/** The supported versions as `engines` in package.json has them. */
export const nodeRange = '^22.22.3 || ^24.15.0 || >=25.8.1'

/** What to do on a Node that is too old, for messages. */
export const nodeAdvice =
  'use Node 24.15 or newer (of 25: 25.8.1 or newer), or 22.22.3 or newer of 22'

/** Whether Redrive supports this version of Node, as in "24.15.0". */
export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number.parseFloat)
  const line = oldest.find(([one]) => one === major)
  if (!line) return major > oldest.at(-1)![0]
  const [, leastMinor, leastPatch] = line
  return minor > leastMinor || (minor === leastMinor && patch >= leastPatch)
}
