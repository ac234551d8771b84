import { createContext, useContext, useEffect, useSyncExternalStore, type ReactNode } from 'react'
import type { FeedEvent } from 'redrive/api'
import type { Connection, Feed } from '../api/feed.ts'

const FeedContext = createContext<Feed | undefined>(undefined)

/** Runs the live feed while the page is open and somebody is signed in. */
export function FeedProvider({ feed, children }: { feed: Feed; children: ReactNode }) {
  useEffect(() => {
    const stop = new AbortController()
    void feed.run(stop.signal)
    return () => stop.abort()
  }, [feed])
  return <FeedContext.Provider value={feed}>{children}</FeedContext.Provider>
}

function useFeed(): Feed {
  const feed = useContext(FeedContext)
  if (!feed) throw new Error('useFeed needs a FeedProvider above it')
  return feed
}

export function useConnection(): Connection {
  const feed = useFeed()
  return useSyncExternalStore(feed.onConnection, () => feed.connection)
}

/** Calls `listener` with new letters while the component is shown. */
export function useNewLetters(
  listener: (event: Extract<FeedEvent, { type: 'letters' }>) => void,
): void {
  const feed = useFeed()
  useEffect(() => feed.onLetters(listener), [feed, listener])
}
