import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createQueryClient } from '../api/query-client.ts'
import { cspNonce, provideCspNonce } from './csp-nonce.ts'
import { PreferencesProvider } from './preferences.tsx'
import { createAppRouter } from './router.tsx'
import { theme } from './theme.ts'

provideCspNonce()
const queryClient = createQueryClient(() => {
  const { pathname, search } = location
  if (pathname !== '/sign-in')
    void router.navigate({ to: '/sign-in', search: { next: pathname + search } })
})
const router = createAppRouter(queryClient)

/** Loads the page of the address. */
export function loadPage(): Promise<void> {
  return router.load()
}

export function App() {
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={cspNonce}>
      <PreferencesProvider>
        <QueryClientProvider client={queryClient}>
          <Notifications position="bottom-right" />
          <RouterProvider router={router} />
        </QueryClientProvider>
      </PreferencesProvider>
    </MantineProvider>
  )
}
