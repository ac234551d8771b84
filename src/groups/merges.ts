import type { GroupState } from './life-cycle.ts'

/** Which fingerprints form one group. */
export class Merges {
  readonly #into = new Map<string, string>()
  readonly #members = new Map<string, string[]>()

  constructor(states: ReadonlyMap<string, GroupState>) {
    for (const [fingerprint, { mergedInto }] of states)
      if (mergedInto !== undefined) this.#into.set(fingerprint, mergedInto)
    for (const fingerprint of this.#into.keys()) {
      const root = this.rootOf(fingerprint)
      if (root !== fingerprint)
        this.#members.set(root, [...(this.#members.get(root) ?? [root]), fingerprint])
    }
  }

  /** The fingerprint of the group that this one belongs to. */
  rootOf(fingerprint: string): string {
    if (!this.#into.has(fingerprint)) return fingerprint
    const path = [fingerprint]
    for (let next = this.#into.get(fingerprint); next !== undefined; next = this.#into.get(next)) {
      // Two people may merge two groups into each other at once. All readers choose the same one.
      if (path.includes(next)) return path.slice(path.indexOf(next)).sort()[0]!
      path.push(next)
    }
    return path.at(-1)!
  }

  /** All fingerprints of the group with this root, itself first. */
  membersOf(root: string): readonly string[] {
    return this.#members.get(root) ?? [root]
  }
}
