import { describe, expect, it } from 'vitest'
import { entryPoints, typescriptPages } from '../../docs/.vitepress/typescript.ts'

describe('the TypeScript reference', () => {
  const pages = new Map(typescriptPages().map(({ params, content }) => [params.entry, content]))

  it.each(entryPoints)('has every value that $specifier exports', async ({ entry, specifier }) => {
    const [values = ''] = pages.get(entry)!.split('\n## Types\n')
    const named = [...values.matchAll(/^### (\w+)$/gm)].map((match) => match[1]!)
    const exported = Object.keys((await import(specifier)) as object)
    expect(named.sort()).toEqual(exported.sort())
  })

  it('has the comment and the declaration of an export', () => {
    expect(pages.get('redrive')).toContain(
      [
        '### never',
        'No automatic retry: only a person can retry the letter.',
        '```\nfunction never(): RetryPolicy;\n```',
      ].join('\n\n'),
    )
  })

  it('has the methods that a class inherits', () => {
    const [, page = ''] = pages.get('redrive')!.split('### DeadLetterQueue\n')
    expect(page.split('\n### ')[0]).toContain('  retry(id: string, by?: string')
  })
})
