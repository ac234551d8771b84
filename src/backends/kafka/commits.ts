/** One commit at a time. Whoever asks meanwhile is answered by the next one, all together. */
export class Commits<P> {
  readonly #send: (parts: Set<P>) => Promise<void>
  #next: { parts: Set<P>; sent: Promise<void> } | undefined
  #last = Promise.resolve()

  constructor(send: (parts: Set<P>) => Promise<void>) {
    this.#send = send
  }

  /** Resolves when the broker has heard how far these are: at least as far as now. */
  ask(parts: Iterable<P>): Promise<void> {
    const next = (this.#next ??= this.#prepare())
    for (const part of parts) next.parts.add(part)
    return next.sent
  }

  /** Resolves once nothing is on its way and nothing waits. */
  idle(): Promise<void> {
    return this.#last
  }

  #prepare(): { parts: Set<P>; sent: Promise<void> } {
    const parts = new Set<P>()
    const sent = this.#last.then(() => {
      this.#next = undefined
      return this.#send(parts)
    })
    this.#last = sent.catch(() => {})
    return { parts, sent }
  }
}
