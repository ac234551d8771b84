import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DefaultTheme } from 'vitepress'
import { entryPoints } from './typescript.ts'

const docs = join(import.meta.dirname, '..')

/**
 * The lists of links in docs/README.md: a group for each heading, and one within it for each line
 * that ends in a colon. The pages of the TypeScript API and of decisions are added.
 */
export function sidebar(): DefaultTheme.SidebarItem[] {
  const groups: DefaultTheme.SidebarItem[] = []
  let items: DefaultTheme.SidebarItem[] = []
  const open = (text: string, parent: DefaultTheme.SidebarItem[]): void => {
    items = []
    parent.push({ text, items })
  }
  for (const line of readFileSync(join(docs, 'README.md'), 'utf8').split('\n')) {
    const [, heading] = /^## (.*)/.exec(line) ?? []
    const [, part] = /^(\w.*):$/.exec(line) ?? []
    const [, text, path] = /^- \[([^\]]*)\]\(([^)]*)\.md\)/.exec(line) ?? []
    if (heading !== undefined) open(heading, groups)
    else if (part !== undefined) open(part, groups.at(-1)!.items!)
    else if (path !== undefined) items.push({ text: text!, link: `/${path}` })
  }
  const groupOf = (text: string): DefaultTheme.SidebarItem =>
    groups.find((group) => group.text === text)!
  groupOf('Reference').items!.push({ text: 'TypeScript API', items: entryItems(), collapsed: true })
  groupOf('Decisions').items = decisionItems()
  return groups.map((group) => ({ ...group, collapsed: group.text !== 'Getting started' }))
}

function entryItems(): DefaultTheme.SidebarItem[] {
  return entryPoints.map(({ entry, specifier }) => ({
    text: specifier,
    link: `/reference/typescript/${entry}`,
  }))
}

function decisionItems(): DefaultTheme.SidebarItem[] {
  return readdirSync(join(docs, 'decisions'))
    .sort()
    .map((file) => ({
      text: /^# (.*)/.exec(readFileSync(join(docs, 'decisions', file), 'utf8'))![1]!,
      link: `/decisions/${file.replace(/\.md$/, '')}`,
    }))
}
