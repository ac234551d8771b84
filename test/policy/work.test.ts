import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { workOf } from '../../src/policy/work.ts'
import { hostileErrors } from '../letter/hostile.ts'

describe('workOf', () => {
  it.each([
    ['llm', 'llm'],
    ['llm_call', 'llm'],
    ['github', 'github'],
    ['github_api', 'github'],
    ['tool', 'tool'],
    ['tool_execution', 'tool'],
    ['verification', 'verification'],
  ])('recognizes the queue %s', (queue, work) => {
    expect(workOf(queue)).toBe(work)
  })

  it.each(['latest', 'digital', 'api', 'github-mirror', 'my_tool', 'LLM', '', '__proto__'])(
    'does not guess from a part of a name: %s',
    (queue) => {
      expect(workOf(queue)).toBeUndefined()
    },
  )

  it.each<[string, unknown, string | undefined]>([
    ['a plain error', new Error('x'), undefined],
    ['a request to GitHub', { request: { url: 'https://api.github.com/repos/a/b' } }, 'github'],
    ['an answer of GitHub', { response: { url: 'https://api.github.com/user' } }, 'github'],
    ['a request of axios', { config: { url: 'https://API.openai.com/v1' } }, 'llm'],
    ['a base of axios', { config: { url: '/v1', baseURL: 'https://api.anthropic.com' } }, 'llm'],
    ['a URL', { options: { url: new URL('https://api.github.com/') } }, 'github'],
    ['a name in a path', { request: { url: 'https://a.test/api.github.com' } }, undefined],
    ['a longer name', { request: { url: 'https://api.github.com.evil.test/' } }, undefined],
    [
      'octokit against a server of its own',
      { request: { url: 'https://git.test/', headers: { 'user-agent': 'octokit-core.js/7' } } },
      'github',
    ],
    [
      'a cause',
      new Error('x', { cause: { request: { url: 'https://api.github.com/' } } }),
      'github',
    ],
  ])('recognizes the kind of work by %s', (_, thrown, work) => {
    expect(workOf('orders', thrown)).toBe(work)
  })

  it('prefers the queue', () => {
    expect(workOf('tool', { request: { url: 'https://api.github.com/' } })).toBe('tool')
  })

  it.each(hostileErrors)('survives $name', ({ make }) => {
    expect(workOf('orders', make())).toBeUndefined()
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.string(), fc.anything(), (queue, thrown) => {
        workOf(queue, thrown)
      }),
    )
  })
})
