import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import '@fontsource-variable/inter/wght.css'
import '@mantine/core/styles.layer.css'
import '@mantine/notifications/styles.layer.css'
import '@mantine/spotlight/styles.layer.css'
import './app/tokens.css'
import { App, loadPage } from './app/app.tsx'
import { atMost } from './app/at-most.ts'

/** A page that takes longer shows its skeleton first. */
const skeletonMs = 300

await atMost(skeletonMs, loadPage())
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
