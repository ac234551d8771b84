import type * as fc from 'fast-check'

/** Applies a step to the model and to the real object. */
export type Act<Model, Real> = (model: Model, real: Real) => Promise<void>

/** A step, printed as its random picks. */
class Step<Model extends object, Real> implements fc.AsyncCommand<Model, Real> {
  readonly #description: string
  readonly #act: Act<Model, Real>

  constructor(description: string, act: Act<Model, Real>) {
    this.#description = description
    this.#act = act
  }

  check(): boolean {
    return true
  }

  run(model: Model, real: Real): Promise<void> {
    return this.#act(model, real)
  }

  toString(): string {
    return this.#description
  }
}

export type Steps<Model extends object, Real> = fc.Arbitrary<Step<Model, Real>>

/** Returns a factory of steps; `around` runs before and after each. */
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
