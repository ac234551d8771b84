/**
 * What a store remembers of the server that the server itself may forget: how many scripts had moved letters. When the
 * number is lower than before, the server has lost writes that it had acknowledged, as after a cut in its
 * append-only file or a failover to a replica that was behind. It is remembered for the life of the store only.
 */
export interface Witness {
  saw(moves: number): void
  /** Takes note of entries of indexes that lead to no letter. */
  strays(count: number): void
  problems(moreStrays: number): string[]
}

export function witness(): Witness {
  let most = 0
  let lost = 0
  let strays = 0
  return {
    saw(moves) {
      if (moves < most) lost += most - moves
      most = moves
    },
    strays(count) {
      strays += count
    },
    problems(moreStrays) {
      const problems: string[] = []
      if (lost > 0)
        problems.push(
          `the server has forgotten ${lost} or more writes that it had acknowledged: look for a cut append-only file or a failover`,
        )
      if (strays + moreStrays > 0)
        problems.push(
          `${strays + moreStrays} entries of indexes led to no readable letter: run redrive doctor --repair`,
        )
      return problems
    },
  }
}
