import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { examineConfig, loadConfig, type ConfigSources } from '../../src/config/load.ts'

const text = `
server:
  host: 0.0.0.0
  publicUrl: https://redrive.example.com
  session: { idleMs: 1h, maxMs: 1d }
  oidc:
    issuer: https://id.example.com
    clientId: redrive
    clientSecret: { env: OIDC_SECRET }
    claims: { role: groups }
    roles: { admin: [dlq-admins] }
`

function sources(yaml: string, env: Record<string, string> = {}): ConfigSources {
  const read = (path: string): string => {
    if (path === 'redrive.yaml') return yaml
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
  }
  return { env, read }
}

function problemsOf(yaml: string, env: Record<string, string> = {}): string[] {
  const examined = examineConfig(sources(yaml, env))
  return 'problems' in examined
    ? examined.problems.map(({ key, text: why }) => `${key} ${why}`)
    : []
}

describe('the settings of the server', () => {
  it('are read with their secrets, which do not appear in the settings', () => {
    const config = loadConfig(sources(text, { OIDC_SECRET: 'hush-1' }))
    expect(config.server).toMatchObject({
      host: '0.0.0.0',
      publicUrl: 'https://redrive.example.com',
      session: { idleMs: 3_600_000, maxMs: 86_400_000 },
      oidc: { clientSecret: 'hush-1', claims: { role: 'groups' } },
    })
    expect(config.options).toEqual({})
    expect(JSON.stringify(config.settings)).not.toMatch(/hush|OIDC_SECRET/)
    expect(config.settings).toContainEqual(
      expect.objectContaining({ key: 'server.oidc.clientSecret', value: '***', secret: true }),
    )
  })

  it('are overridden by the environment', () => {
    const env = { OIDC_SECRET: 'x', REDRIVE_SERVER__PORT: '8080', REDRIVE_SERVER__HOST: '::1' }
    expect(loadConfig(sources(text, env)).server).toMatchObject({ port: 8080, host: '::1' })
  })

  it('are valid in all examples of the documentation', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/operating/sign-in.md'), 'utf8')
    const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml]) => yaml!)
    expect(examples).toHaveLength(4)
    for (const yaml of examples) expect(problemsOf(yaml, { OIDC_CLIENT_SECRET: 'x' })).toEqual([])
  })

  it('are empty by default', () => {
    expect(loadConfig(sources('')).server).toEqual({})
  })

  it('are rejected without the secret of the client', () => {
    expect(problemsOf(text)).toEqual([
      'server.oidc.clientSecret the environment variable OIDC_SECRET is not set or empty',
    ])
  })

  it('are rejected with a secret in the file, which is not shown', () => {
    const [problem, ...others] = problemsOf(text.replace('{ env: OIDC_SECRET }', 'hush-1'))
    expect(problem).toContain('server.oidc.clientSecret')
    expect(problem).not.toContain('hush-1')
    expect(others).toEqual([])
  })

  it('need the public address for an identity provider', () => {
    const [problem] = problemsOf(text.replace(/.*publicUrl.*\n/, ''), { OIDC_SECRET: 'x' })
    expect(problem).toContain('server.oidc needs server.publicUrl')
  })
})
