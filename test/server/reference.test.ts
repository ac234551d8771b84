import { describe, expect, it } from 'vitest'
import { endpointNames, endpointOf } from '../../src/api/endpoints.ts'
import { openApiDocument } from '../../src/api/openapi.ts'
import { renderReference } from '../../src/server/reference/page.ts'
import { aServer } from './a-server.ts'

/** Endpoints with the same route have one operation. */
const routes = new Map(
  endpointNames.toReversed().map((name) => {
    const { method, path } = endpointOf(name)
    return [`${method} ${path}`, name]
  }),
)

describe('the reference page', () => {
  const html = renderReference(openApiDocument('1.2.3'))

  it('is served to everybody with a policy that allows no script', async () => {
    const server = await aServer()
    const page = await fetch(`${server.url}/reference`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'self'")
    expect(policy).not.toContain('unsafe')
    expect(await page.text()).toContain('Redrive API reference')
    const style = await fetch(`${server.url}/reference.css`)
    expect(style.headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect(await style.text()).toContain('prefers-color-scheme: dark')
    await server.close()
  })

  it('has no script, no inline style, and nothing from elsewhere', () => {
    expect(html).not.toMatch(/<script|<style|\sstyle=|\son\w+=|javascript:/i)
    const addresses = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, one]) => one!)
    const elsewhere = addresses.filter((one) => !/^(#|\/)(?!\/)/.test(one))
    expect(elsewhere).toEqual([])
    expect(addresses).toContain('/reference.css')
  })

  it.each([...routes])('describes %s', (route, name) => {
    const [method, path] = route.split(' ') as [string, string]
    expect(html).toContain(`<article id="${name}">`)
    expect(html).toContain(`<span class="method">${method}</span>`)
    expect(html).toContain(`<code>${path.replaceAll('/', '/<wbr>')}</code>`)
    expect(html).toContain(`client.${name}`)
  })

  it('has a target for every link of the page, and no id twice', () => {
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id!)
    expect(ids).toEqual([...new Set(ids)])
    const links = new Set([...html.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id!))
    expect([...links].filter((link) => !ids.includes(link))).toEqual([])
  })

  it('closes every element', () => {
    const open: string[] = []
    for (const [, slash, name] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
      if (['meta', 'link', 'wbr'].includes(name!)) continue
      if (slash === '') open.push(name!)
      else expect(open.pop()).toBe(name)
    }
    expect(open).toEqual([])
  })

  it('escapes what the document contains', () => {
    const document = openApiDocument('<img src=x>') as { info: { title: string } }
    document.info.title = '"><script>alert(1)</script>'
    const page = renderReference(document)
    expect(page).not.toContain('<script')
    expect(page).not.toContain('<img')
  })

  it('has an example with all required fields', () => {
    const plan = html.slice(html.indexOf('<article id="planBulkAction">'))
    const [, example] = /-d '([^']+)'/.exec(plan)!
    const body: unknown = JSON.parse(example!.replaceAll('&quot;', '"'))
    expect(body).toEqual({ action: 'retry', filter: {} })
  })
})
