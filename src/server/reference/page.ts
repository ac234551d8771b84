import { anchorOf, code, escapeHtml, sentence } from './html.ts'
import {
  exampleOf,
  renderFields,
  renderSchema,
  schemaAnchor,
  type Field,
  type Schema,
} from './schema.ts'

/** The parts of an OpenAPI document that the page shows. */
interface Document {
  info: { title: string; version: string; description: string }
  components: { schemas: { [name: string]: Schema } }
  paths: { [path: string]: { [method: string]: Operation } }
}

interface Operation {
  operationId: string
  tags: [string]
  summary: string
  description?: string
  security?: unknown[]
  'x-permission'?: string
  'x-permission-by-action'?: { [action: string]: string }
  parameters?: Parameter[]
  requestBody?: { content: Content }
  responses: { [status: string]: { description: string; content: Content } }
}

interface Parameter {
  name: string
  in: string
  required: boolean
  description?: string
  schema: Schema
}

type Content = { [type: string]: { schema: Schema } }

interface Route {
  method: string
  path: string
  operation: Operation
}

/**
 * The reference of the API as one page of static HTML, from the OpenAPI document. It has no script
 * and no inline style, so that a strict Content-Security-Policy allows it.
 */
export function renderReference(given: object): string {
  const document = given as Document
  const { info, components } = document
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Route => ({ method, path, operation })),
  )
  const byTag = Map.groupBy(routes, ({ operation }) => operation.tags[0])
  const { schemas } = components
  const sections = [...byTag].map(([tag, some]) => renderTag(tag, some, schemas))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(info.title)} API reference</title>
<link rel="stylesheet" href="/reference.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1>${escapeHtml(info.title)} API reference</h1>
<p>${sentence(info.description)} Version ${escapeHtml(info.version)}.</p>
<p>The same as an <a href="/api/openapi.json">OpenAPI 3.1 document</a>.</p>
</header>
<div class="columns">
${renderContents(byTag)}
<main id="content">
${renderIntroduction()}
${sections.join('\n')}
${renderSchemas(schemas)}
</main>
</div>
</body>
</html>
`
}

function renderContents(byTag: ReadonlyMap<string, readonly Route[]>): string {
  const tags = [...byTag].map(([tag, routes]) => {
    const items = routes.map(
      ({ operation }) =>
        `<li><a href="#${operation.operationId}">${escapeHtml(operation.operationId)}</a></li>`,
    )
    return `<li><a href="#tag-${anchorOf(tag)}">${escapeHtml(tag)}</a><ul>${items.join('')}</ul></li>`
  })
  return `<nav aria-label="Contents"><ul>${tags.join('\n')}<li><a href="#schemas">Schemas</a></li></ul></nav>`
}

function renderIntroduction(): string {
  return `<section>
<ul>
<li>Send a token as <code>Authorization: Bearer TOKEN</code>.</li>
<li>Input is strict: an unknown field is rejected by its name.</li>
<li>An error is a <a href="#${schemaAnchor('Problem')}">problem document</a> (RFC 9457).</li>
<li>With an <code>Idempotency-Key</code>, a request that changes something is made once, however often
it is sent. Requests with a stream or a body of lines have no such key.</li>
<li>With <code>If-Match</code>, an action on a letter or a saved view happens only if its ETag is
still the same.</li>
</ul>
</section>`
}

function renderTag(
  tag: string,
  routes: readonly Route[],
  schemas: { [name: string]: Schema },
): string {
  const operations = routes.map((route) => renderOperation(route, schemas))
  return `<section>
<h2 id="tag-${anchorOf(tag)}">${escapeHtml(tag)}</h2>
${operations.join('\n')}
</section>`
}

function renderOperation(route: Route, schemas: { [name: string]: Schema }): string {
  const { method, path, operation } = route
  const { operationId: id, summary, description, parameters = [], requestBody } = operation
  const places = Map.groupBy(parameters, (parameter) => parameter.in)
  const fields = [...places].map(([place, some]) =>
    block(`Parameters of the ${place}`, renderFields(some.map(fieldOf))),
  )
  const body = Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) =>
    block(`Body: ${code(type)}`, renderSchema(schema)),
  )
  const { default: _, ...successes } = operation.responses
  const responses = Object.entries(successes).flatMap(([status, { content }]) =>
    Object.entries(content).map(([type, { schema }]) =>
      block(`Response ${status}: ${code(type)}`, renderSchema(schema)),
    ),
  )
  return `<article id="${id}">
<h3><a href="#${id}"><span class="method">${method.toUpperCase()}</span> <code>${pathOf(path)}</code></a></h3>
<p>${sentence(description ?? summary)}</p>
<p class="facts">${permissionOf(operation)}. In the client: ${code(`client.${id}`)}.</p>
${fields.join('\n')}
${body.join('\n')}
<pre><code>${escapeHtml(curlOf(route, schemas))}</code></pre>
${responses.join('\n')}
</article>`
}

function fieldOf({ name, required, description, schema }: Parameter): Field {
  return { name, required, schema: description === undefined ? schema : { ...schema, description } }
}

/** Long paths may break after a slash. */
function pathOf(path: string): string {
  return escapeHtml(path).replaceAll('/', '/<wbr>')
}

function block(title: string, content: string): string {
  return `<details><summary>${title}</summary>${content}</details>`
}

function permissionOf(operation: Operation): string {
  const byAction = operation['x-permission-by-action']
  if (byAction) {
    const permissions = [...new Set(Object.values(byAction))].map(code)
    return `Permission of the bulk action: one of ${permissions.join(', ')}`
  }
  const permission = operation['x-permission']
  if (permission !== undefined) return `Permission: ${code(permission)}`
  return operation.security ? 'Needs no token' : 'Every token'
}

/** A request with everything that is required. */
function curlOf({ method, path, operation }: Route, schemas: { [name: string]: Schema }): string {
  const { parameters = [], requestBody, security } = operation
  const valueOf = ({ name, schema }: Parameter): string =>
    encodeURIComponent(String(exampleOf(schema, name, schemas)))
  let address = path
  for (const one of parameters.filter((parameter) => parameter.in === 'path'))
    address = address.replace(`{${one.name}}`, valueOf(one))
  const query = parameters.filter((one) => one.in === 'query' && one.required)
  if (query.length > 0) address += `?${query.map((one) => `${one.name}=${valueOf(one)}`).join('&')}`
  const [content] = Object.entries(requestBody?.content ?? {})
  const lines = [
    `curl${method === 'get' || (method === 'post' && content) ? '' : ` -X ${method.toUpperCase()}`} 'http://127.0.0.1:7400${address}'`,
    ...(security ? [] : [`-H "Authorization: Bearer $TOKEN"`]),
    ...(content
      ? [
          `-H 'content-type: ${content[0]}'`,
          content[0] === 'application/json'
            ? `-d '${JSON.stringify(exampleOf(content[1].schema, '', schemas))}'`
            : `--data-binary @lines.ndjson`,
        ]
      : []),
  ]
  return lines.join(' \\\n  ')
}

function renderSchemas(schemas: { [name: string]: Schema }): string {
  const items = Object.entries(schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, schema]) =>
        `<article id="${schemaAnchor(name)}"><h3><a href="#${schemaAnchor(name)}">${escapeHtml(name)}</a></h3>${renderSchema(schema)}</article>`,
    )
  return `<section>
<h2 id="schemas">Schemas</h2>
${items.join('\n')}
</section>`
}
