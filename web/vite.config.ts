import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import type { Endpoint } from '../src/api/endpoint.ts'
import { endpoints } from '../src/api/endpoints.ts'

const serverUrl = 'http://127.0.0.1:7400'

/**
 * Leaves the schemas out of the table of endpoints. The client does not use them, and to load them
 * takes longer than to draw a page.
 */
const withoutSchemas: Plugin = {
  name: 'endpoints-without-schemas',
  load(id) {
    if (!id.endsWith('/src/api/endpoints.ts')) return undefined
    const routes = Object.entries(endpoints).map(([name, endpoint]) => {
      const { method, path, body, stream, text } = endpoint as Endpoint
      return [name, { method, path, body, stream, text }]
    })
    return `
      export const endpoints = ${JSON.stringify(Object.fromEntries(routes))}
      export const endpointNames = Object.keys(endpoints)
      export const endpointOf = (name) => endpoints[name]
    `
  },
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), withoutSchemas],
  resolve: {
    alias: { 'redrive/api': fileURLToPath(new URL('../src/api/index.ts', import.meta.url)) },
  },
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2023',
    // The server allows styles and fonts of its own address only: no `data:` URLs.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      output: {
        // One script for what most pages use, and one for each page.
        codeSplitting: {
          groups: [
            {
              name: 'libraries',
              test: /node_modules.(react|react-dom|scheduler|@tanstack|@mantine|@floating-ui|clsx)\b/,
            },
            { name: 'shared', test: /web.src.(ui|app|api|format)./, minShareCount: 2 },
          ],
        },
      },
    },
  },
  // `npm run dev` shows the pages of the source with the data of a server that runs already.
  server: { proxy: { '/api': serverUrl, '/login': serverUrl, '/reference': serverUrl } },
})
