import type * as fc from 'fast-check'

/** What a step does to the model and to the real thing. */
export type Act<Model, Real> = (model: Model, real: Real) => Promise<void>

/** A step, told by the picks it was made from. */
class Step<Model extends object, Real> implements fc.AsyncCommand<Model, Real> {
  readonly #told: string
  readonly #act: Act<Model, Real>

  constructor(told: string, act: Act<Model, Real>) {
    this.#told = told
    this.#act = act
  }

  check(): boolean {
    return true
  }

  run(model: Model, real: Real): Promise<void> {
    return this.#act(model, real)
  }

  toString(): string {
    return this.#told
  }
}

export type Steps<Model extends object, Real> = fc.Arbitrary<Step<Model, Real>>

/** A maker of steps; `around` is what comes before and after the act of each. */
export function stepsOf<Model extends object, Real>(
  around: (act: Act<Model, Real>) => Act<Model, Real>,
) {
  return <T>(
    name: string,
    picks: fc.Arbitrary<T>,
    act: (picks: T, model: Model, real: Real) => Promise<void>,
  ): Steps<Model, Real> =>
    picks.map(
      (picked) =>
        new Step(
          `${name}(${JSON.stringify(picked)})`,
          around((model, real) => act(picked, model, real)),
        ),
    )
}
