import { readSecret, type Environment, type ReadFile } from './environment.ts'
import { problemAt, type Layer, type Path, type Problem } from './layer.ts'

/** Where a secret is read from. */
export type GivenSecret = { env: string } | { file: string }

/**
 * Reads secrets from the variables and files that the configuration names. A missing or empty
 * secret is a problem.
 */
export class Secrets {
  readonly problems: Problem[] = []
  readonly #layer: Layer
  readonly #env: Environment
  readonly #read: ReadFile

  constructor(layer: Layer, env: Environment, read: ReadFile) {
    this.#layer = layer
    this.#env = env
    this.#read = read
  }

  reveal(secret: GivenSecret, path: Path): string {
    const value = 'env' in secret ? this.#variable(secret.env) : readSecret(secret.file, this.#read)
    if (value !== undefined && value !== '') return value
    const missing =
      'env' in secret
        ? `the environment variable ${secret.env} is not set or empty`
        : `the file ${secret.file} cannot be read or is empty`
    this.reject(path, missing)
    return ''
  }

  #variable(name: string): string | undefined {
    return Object.hasOwn(this.#env, name) ? this.#env[name] : undefined
  }

  reject(path: Path, why: string): void {
    this.problems.push(problemAt(path, this.#layer, why))
  }
}
