const maxAncestors = 8
const none: readonly string[] = []

/** Names of the class of a thrown error and of those it extends, nearest first, up to Error, which is left out. */
export function ancestorsOf(thrown: unknown): readonly string[] {
  if (typeof thrown !== 'object' || thrown === null) return none
  try {
    let prototype: unknown = Object.getPrototypeOf(thrown)
    if (prototype === Error.prototype) return none
    const names: string[] = []
    while (typeof prototype === 'object' && prototype !== null && names.length < maxAncestors) {
      const name: unknown = prototype.constructor?.name
      if (name === 'Error' || name === 'Object') break
      if (typeof name === 'string') names.push(name)
      prototype = Object.getPrototypeOf(prototype)
    }
    return names
  } catch {
    // A proxy may refuse to be looked at.
    return none
  }
}
