/** The path to a value in a JSON document, as in RFC 6901: `/items/0/price`. */
export function toPointer(tokens: readonly (string | number)[]): string {
  return tokens
    .map((token) => `/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('')
}

/** The keys and indices of a pointer. Undefined if it is not one. */
export function tokensOf(pointer: unknown): string[] | undefined {
  if (typeof pointer !== 'string') return undefined
  if (pointer === '') return []
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}
