import type { OperationInput } from '../src/index.ts'

/** Number of different causes of the letters. */
const causes = 50

const text = 'x'.repeat(1024 - '{"order":000000000,"note":""}'.length)

/** A failed call with a payload of a kibibyte. */
export function operation(n: number, type = 'charge-card'): OperationInput {
  return { type, payload: { order: 100_000_000 + n, note: text } }
}

const frames = Array.from(
  { length: 8 },
  (_, n) =>
    `    at PaymentClient.method${n} (/srv/app/node_modules/pay/lib/client.js:${100 + n}:17)`,
).join('\n')

const errors = failures(causes)

/** Errors with different causes, each with a stack of 600 characters. */
export function failures(count: number): Error[] {
  return Array.from({ length: count }, (_, n) => {
    const error = Object.assign(new Error(`connect ECONNREFUSED to gateway ${gateway(n)}`), {
      code: 'ECONNREFUSED',
    })
    error.stack = `Error: ${error.message}\n${frames}`.slice(0, 600)
    return error
  })
}

/** Gateways whose names differ in letters, so that each is a separate cause. */
function gateway(n: number): string {
  const letter = (at: number): string => String.fromCharCode(97 + (Math.floor(n / 26 ** at) % 26))
  return `${letter(0)}${letter(1)}${letter(2)}x`
}

/** An error with one of 50 causes. */
export function failure(n: number): Error {
  return errors[n % causes]!
}
