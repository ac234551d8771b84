/** Collects what a tap delivers, in order, for a test that waits for it. */
export interface Inbox<T> {
  put(value: T): void
  next(): Promise<T>
}

export function inbox<T>(): Inbox<T> {
  const values: T[] = []
  const waiting: ((value: T) => void)[] = []
  return {
    put: (value) => {
      const resolve = waiting.shift()
      if (resolve) resolve(value)
      else values.push(value)
    },
    next: () =>
      values.length > 0
        ? Promise.resolve(values.shift()!)
        : new Promise((resolve) => waiting.push(resolve)),
  }
}
