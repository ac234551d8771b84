import { useEffect, useState } from 'react'
import { useQueryClient } from '@tanstack/react-query'
import { Feed } from '../api/feed.ts'
import { FeedProvider } from './feed.tsx'
import { Layout } from './layout.tsx'
import { ShortcutsProvider } from './shortcuts.tsx'
import { signInByAddress } from './sign-in-code.ts'

/** What all pages of a signed-in reader share. */
export function SignedIn() {
  const queryClient = useQueryClient()
  const [feed] = useState(() => new Feed(queryClient))
  useEffect(() => {
    const signIn = (): void => void signInByAddress(queryClient)
    addEventListener('hashchange', signIn)
    return () => removeEventListener('hashchange', signIn)
  }, [queryClient])
  return (
    <FeedProvider feed={feed}>
      <ShortcutsProvider>
        <Layout />
      </ShortcutsProvider>
    </FeedProvider>
  )
}
