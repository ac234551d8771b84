import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { sidebar } from './sidebar.ts'

export default defineConfig({
  title: 'Redrive',
  description: 'The dead letter system for TypeScript and Node',
  lang: 'en',
  base: '/docs/',
  outDir: '../dist/docs',
  cacheDir: '../node_modules/.cache/vitepress',
  rewrites: { 'README.md': 'index.md' },
  // A transition is disabled with a style element, which the content security policy forbids.
  appearance: { disableTransition: false },
  head: [['link', { rel: 'icon', href: '/docs/icon.svg' }]],
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sidebar(),
    outline: [2, 3],
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Operations', link: '/operating/server' },
      { text: 'Troubleshooting', link: '/troubleshooting' },
    ],
  },
  buildEnd({ srcDir, outDir }) {
    const schema = 'reference/config.schema.json'
    cpSync(join(srcDir, schema), join(outDir, schema))
  },
})
