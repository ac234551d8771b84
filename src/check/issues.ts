import { z } from 'zod'
import { RedriveError, type ErrorCode } from '../errors.ts'
import { checkObject, describeValue, hintFor, withoutUndefined } from './keys.ts'
import { nearest } from './nearest.ts'
import { describeNode, enumOf, keysAt, nodeAt, type SchemaNode } from './schema-node.ts'

/** An issue of zod, formatted for people. */
export interface FormattedIssue {
  path: readonly PropertyKey[]
  /** True: the last key of the path is not in the schema, and `text` says what to use instead. */
  isUnknownKey: boolean
  /**
   * What is wrong with the value, what is allowed, and what was given. Follows the path in a
   * sentence.
   */
  text: string
}

type Issue = z.core.$ZodIssue

interface Subject {
  schema: SchemaNode
  value: unknown
  isSecret: (path: readonly PropertyKey[]) => boolean
}

/** Describes the issues of `value` by its schema. Secrets are left out of the text. */
export function formatIssues(
  issues: readonly Issue[],
  { isSecret = () => false, ...subject }: Omit<Subject, 'isSecret'> & Partial<Subject>,
): FormattedIssue[] {
  return issues.flatMap((issue) => formatIssue(issue, [], { ...subject, isSecret }))
}

function formatIssue(
  issue: Issue,
  above: readonly PropertyKey[],
  subject: Subject,
): FormattedIssue[] {
  const path = [...above, ...issue.path]
  const describe = (text: string): FormattedIssue[] => [{ path, isUnknownKey: false, text }]
  const addGiven = (message: string): string =>
    /^must (not )?be /.test(message) ? `${message}, got ${describeGiven(path, subject)}` : message
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => formatUnknownKey(key, path, subject))
    case 'invalid_union': {
      const closest = findClosestForm(issue.errors)
      if (closest) return closest.flatMap((inner) => formatIssue(inner, path, subject))
      return describe(hasOwnMessage(issue) ? addGiven(issue.message) : describeWrong(path, subject))
    }
    case 'invalid_key':
      return describe('is not a valid name: use 1 to 200 characters without control characters')
    case 'custom':
      return describe(addGiven(issue.message))
    default:
      return describe(describeWrong(path, subject))
  }
}

/**
 * A union has its own message where JSON Schema cannot describe a form of it, such as a function.
 */
function hasOwnMessage({ message }: Issue): boolean {
  return message.startsWith('must ')
}

/**
 * The issues of the form that fits best: the value has this form, and only parts of the value are
 * wrong. Undefined if no form fits.
 */
function findClosestForm(forms: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const inside = ({ code, path }: Issue): boolean => path.length > 0 || code === 'unrecognized_keys'
  const candidates = forms
    .map((issues) => issues.filter(inside))
    .filter((issues) => issues.length > 0)
  return candidates.sort((a, b) => a.length - b.length)[0]
}

function formatUnknownKey(
  key: string,
  above: readonly PropertyKey[],
  { schema, value }: Subject,
): FormattedIssue {
  const path = [...above, key]
  const known = keysAt(above, schema)
  if (!known.includes(key)) return { path, isUnknownKey: true, text: hintFor(key, known) }
  // Another form of the union has the key.
  const kind = valueAt(value, [...above, 'kind'])
  const others = kind === undefined ? 'the other keys here' : `kind ${describeValue(kind)}`
  return { path, isUnknownKey: false, text: `is not allowed with ${others}` }
}

function describeWrong(path: readonly PropertyKey[], subject: Subject): string {
  const node = nodeAt(path, subject.schema)
  const allowed = (node && describeNode(node)) || 'another value'
  const given = valueAt(subject.value, path)
  if (given === undefined) return `is missing: it must be ${allowed}`
  const near = node && typeof given === 'string' ? nearest(given, enumOf(node)) : undefined
  const hint = near === undefined ? '' : `; did you mean "${near}"?`
  return `must be ${allowed}, got ${describeGiven(path, subject)}${hint}`
}

function describeGiven(path: readonly PropertyKey[], { value, isSecret }: Subject): string {
  const given = valueAt(value, path)
  const isEmpty = given === null || given === '' || given === undefined
  return isSecret(path) && !isEmpty ? 'a value that is not shown' : describeValue(given)
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<PropertyKey, unknown>)[key]
        : undefined,
    value,
  )
}

/** The first of the issues that a schema found in a value. */
export function firstIssue(error: z.ZodError, schema: z.ZodType, value: unknown): FormattedIssue {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as SchemaNode
  const [issue] = formatIssues(error.issues, { schema: json, value })
  return issue!
}

/**
 * The zod schemas for the keys of T. The compiler rejects a missing key and a schema of another
 * type.
 */
export type ShapeOf<T extends object> = {
  [K in keyof T]-?: z.core.$ZodType<WithUndefined<T[K]> | null | undefined>
}
/** zod reads a key that is undefined as absent; TypeScript tells the two apart. */
type WithUndefined<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly (infer Item)[]
    ? readonly WithUndefined<Item>[]
    : T extends object
      ? { [K in keyof T]: WithUndefined<T[K]> | undefined }
      : T

/**
 * The schema of an options interface. The interface has the docs, and the compiler compares the
 * two.
 */
export function schemaFor<T extends object>(shape: ShapeOf<T>): z.ZodObject {
  return z.strictObject(shape)
}

/** A function of type T. */
export function functionSchema<T>(): z.ZodType<T> {
  return z.custom<T>((value) => typeof value === 'function', 'must be a function')
}

interface Check {
  /** What a key of the value is called, as in "queue option". */
  thing: string
  code: ErrorCode
  /** Names of keys in other systems, and what to use instead. */
  renamed?: Readonly<Record<string, string>>
}

/**
 * Throws an error for the first thing that is wrong with a value. Keys that are undefined count as
 * absent.
 */
export function checkSchema(
  schema: z.ZodObject,
  value: object,
  { thing, code, renamed = {} }: Check,
): void {
  checkObject(`${thing}s`, value, code)
  const result = schema.safeParse(withoutUndefined(value))
  if (result.success) return
  const { path, isUnknownKey, text } = firstIssue(result.error, schema, value)
  const key = path.join('.')
  if (!isUnknownKey) throw new RedriveError(code, `${thing} "${key}" ${text}`)
  const hint = Object.hasOwn(renamed, key) ? `use ${renamed[key]}` : text
  throw new RedriveError(code, `unknown ${thing} "${key}": ${hint}`)
}
