import type { Span } from './spans.ts'

/*
 * Each expression here takes time that is about linear in the text: a match can begin only where no
 * character of the same class is before it, and repetitions that follow each other have no
 * character in common.
 */

type Find = (text: string) => Span[]

/** `group`: only this group of the expression is secret. */
function matches(pattern: RegExp, group = 0): Find {
  return (text) =>
    [...text.matchAll(pattern)].map((match) => {
      const secret = match[group]!
      const start = match.index + (group === 0 ? 0 : match[0].lastIndexOf(secret))
      return { start, end: start + secret.length }
    })
}

const finders = {
  'bearer-token': matches(/\b(?:bearer|basic)\s{1,4}([\w.~+/=-]{6,})/giu, 1),
  'api-key': joined(
    matches(
      /(?<![\w-])(?:[sr]k[_-](?:live|test|proj|ant)[_-][\w-]{8,}|sk-[\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{8,}|AKIA[A-Z\d]{16}|AIza[\w-]{30,}|npm_\w{30,}|SG\.[\w-]{16,}\.[\w-]{16,}|rdt_[\w-]{16,})/gu,
    ),
    matches(
      /(?<![\w-])(?:api[_-]?key|access[_-]?key|secret[_-]?key|client[_-]?secret|secret|access[_-]?token|auth[_-]?token|token|password|passwd|pwd)["']?\s{0,4}[:=]\s{0,4}["']?([^\s"',;&()]{4,})/giu,
      1,
    ),
  ),
  // The end may be cut off: the beginning alone is `{"` in base64.
  jwt: matches(/(?<![\w-])eyJ[\w-]{8,}(?:\.[\w-]*){0,2}/gu),
  'card-number': findCards,
  email: matches(/(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu),
  'url-credentials': matches(/(?<![\w+.-])[a-z][\w+.-]*:\/\/([^\s/@:]*:[^\s/@]+)@/giu, 1),
  'private-key': matches(
    /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:(?!-----END )[^])*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?/gu,
  ),
} satisfies Record<string, Find>

function joined(...all: readonly Find[]): Find {
  return (text) => all.flatMap((find) => find(text))
}

/** What a detector finds in a string. `secret-field` looks at names of fields instead. */
export const detectors = [
  ...(Object.keys(finders) as (keyof typeof finders)[]),
  'secret-field',
] as const
export type Detector = keyof typeof finders | 'secret-field'

/** The parts of a string that the detectors find. */
export function detect(text: string, wanted: ReadonlySet<Detector>): Span[] {
  return [...wanted].flatMap((name) => (name === 'secret-field' ? [] : finders[name](text)))
}

const secretName =
  /^(?:.*[_-])?(?:password|passwd|pwd|passphrase|secret|token|apikey|api-key|api_key|accesskey|access-key|access_key|privatekey|private-key|private_key|credentials?|authorization|cookie|set-cookie|cvv|cvc|ssn|iban)$/i

/** Whether a field with this name has a secret value: `password`, `clientSecret`, `x-api-key`. */
export function isSecretName(name: string): boolean {
  if (name.length > 100) return false
  return secretName.test(name.replaceAll(/([a-z\d])([A-Z])/g, '$1-$2'))
}

/**
 * Card numbers of 13 to 19 digits with a valid check digit. They may be written in groups, next to
 * other numbers.
 */
function findCards(text: string): Span[] {
  const spans: Span[] = []
  for (const run of text.matchAll(/\d+(?:[ -]\d+)*/g)) {
    if (run[0].length < 13) continue
    const groups = [...run[0].matchAll(/\d+/g)]
    for (const [index, first] of groups.entries()) {
      let digits = ''
      for (const group of groups.slice(index, index + maxGroups)) {
        digits += group[0]
        if (digits.length > 19) break
        if (digits.length >= 13 && isCard(digits)) {
          const start = run.index + first.index
          spans.push({ start, end: run.index + group.index + group[0].length })
        }
      }
    }
  }
  return spans
}

/** A card number of 19 digits in groups of at least 3. */
const maxGroups = 6

/** Whether the first digit is that of a card, and the check digit is right (Luhn). */
function isCard(digits: string): boolean {
  if (!/^[2-6]/.test(digits)) return false
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits.at(-1 - index))
    const doubled = digit * 2
    sum += index % 2 === 0 ? digit : doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
