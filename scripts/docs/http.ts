import { endpointNames, endpointOf } from '../../src/api/endpoints.ts'

/** The page of all endpoints, from their table. */
export function httpPage(): string {
  const byTag = Map.groupBy(endpointNames.map(endpointOf), ({ tag }) => tag)
  return [
    '# HTTP endpoints',
    '',
    'All endpoints of the server. `/reference` of a running server shows the input and the output of',
    'each, and `/api/openapi.json` is the OpenAPI 3.1 document. The [guide](../guides/http-api.md)',
    'explains tokens, permissions, scopes, errors and paging.',
    '',
    'The permission _public_ needs no token, and _any_ every token. _By action_ is the permission of the',
    'action that a bulk action performs.',
    ...[...byTag].flatMap(([tag, endpoints]) => [
      '',
      `## ${tag}`,
      '',
      '| endpoint | permission | effect |',
      '|---|---|---|',
      ...endpoints.map(({ method, path, permission, summary }) => {
        const shown = permission.includes(':') || permission === 'admin'
        return `| \`${method} ${path}\` | ${shown ? `\`${permission}\`` : `_${permission.replace('-', ' ')}_`} | ${summary} |`
      }),
    ]),
  ].join('\n')
}
