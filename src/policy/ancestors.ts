const maxAncestors = 8
const none: readonly string[] = []

/** Names of the class of an error and its superclasses, nearest first, without Error itself. */
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
    // A proxy may throw.
    return none
  }
}
