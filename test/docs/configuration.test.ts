import { describe, expect, it } from 'vitest'
import { examineConfig } from '../../src/config/load.ts'
import { readBlocks } from './blocks.ts'

/** Blocks for other programs, or parts of a value. */
const others = new Set([
  'docs/guides/pipelines.md 1', // graphs of a pipeline
  'docs/guides/metrics.md 1', // Prometheus
  'docs/guides/workers.md 2', // one handler
  'docs/operating/docker.md 1', // Compose
  'docs/operating/docker.md 2', // Kubernetes
])

const blocks = readBlocks('yaml').map((block) => ({
  name: `${block.page} ${block.number}`,
  code: block.code,
}))

/** Also a valid key for encryption. */
const secret = Buffer.alloc(32, 7).toString('base64')

/** A value for each variable with a secret that the block names. */
function secretsOf(code: string): Record<string, string> {
  const names = [...code.matchAll(/\benv: (\w+)/g)].map((match) => match[1]!)
  return Object.fromEntries(
    names.map((name) => {
      if (/SLACK|HOOK_URL/.test(name)) return [name, 'https://hooks.example.com/services/x']
      return [name, /QUEUE|URL/.test(name) ? 'sqlite:mail.db#mails' : secret]
    }),
  )
}

describe('the blocks of YAML in docs/', () => {
  it.for(blocks.filter(({ name }) => !others.has(name)))('$name configures Redrive', ({ code }) => {
    const read = (path: string): string => (path === 'redrive.yaml' ? code : secret)
    expect(examineConfig({ file: 'redrive.yaml', env: secretsOf(code), read })).not.toHaveProperty(
      'problems',
    )
  })

  it('are for Redrive, except for those that are listed', () => {
    const names = blocks.map(({ name }) => name)
    expect([...others].filter((name) => !names.includes(name))).toEqual([])
  })
})
