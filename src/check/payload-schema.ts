import { createRequire } from 'node:module'
import type * as draft7 from 'ajv'
import type * as draft2020 from 'ajv/dist/2020.js'
import type { Payload } from '../letter/letter.ts'
import { decodePayload, kindOf } from '../letter/payload.ts'

/** A JSON Schema of draft 2020-12, or of draft 7 if `$schema` says so. */
export type JsonSchema = { readonly [keyword: string]: unknown }

const require = createRequire(import.meta.url)
const validators = new WeakMap<JsonSchema, draft7.ValidateFunction>()

/** Why a JSON Schema cannot be used. Undefined: it can. */
export function whyInvalidSchema(schema: JsonSchema): string | undefined {
  try {
    validatorOf(schema)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * Why a payload does not satisfy a JSON Schema, with the path and the rule. Undefined: it does. The
 * reason does not quote the payload.
 */
export function whyUnfitPayload(payload: Payload, schema: JsonSchema): string | undefined {
  if (kindOf(payload.contentType) !== 'json')
    return `it is ${payload.contentType.slice(0, 80)}, not JSON`
  let document: unknown
  try {
    document = decodePayload(payload)
  } catch (error) {
    return (error as Error).message
  }
  const validate = validatorOf(schema)
  if (validate(document)) return undefined
  const { instancePath, message, keyword } = validate.errors![0]!
  const where = instancePath === '' ? 'the document' : instancePath.slice(0, 200)
  return `${where} ${message} (rule ${keyword})`
}

/** Unknown keywords are errors; formats are not checked. Each schema has its own `$id` names. */
function validatorOf(schema: JsonSchema): draft7.ValidateFunction {
  const known = validators.get(schema)
  if (known) return known
  if (schema['$async'] !== undefined) throw new Error('$async is not supported')
  const validate = openAjv(String(schema['$schema'])).compile(schema)
  validators.set(schema, validate)
  return validate
}

/** Loaded on first use: loading takes longer than the start of the command line. */
function openAjv(dialect: string): Pick<draft7.Ajv, 'compile'> {
  const options = { strictTypes: false, strictRequired: false, validateFormats: false } as const
  if (dialect.includes('draft-07')) {
    const { Ajv } = require('ajv') as typeof draft7
    return new Ajv(options)
  }
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof draft2020
  return new Ajv2020(options)
}
