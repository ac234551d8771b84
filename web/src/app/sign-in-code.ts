import type { QueryClient } from '@tanstack/react-query'
import { api } from '../api/client.ts'
import { queries } from '../api/queries.ts'

/** The exchange of the last code. */
let exchange: Promise<void> = Promise.resolve()

/**
 * Exchanges the one-time code of an address such as /#code=… for a session. The code stays neither
 * in the address bar nor in the history. To change the address makes the router load the page once
 * more: that load finds no code, and waits for the same exchange.
 */
export function signInByAddress(queryClient: QueryClient): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code === null) return exchange
  exchange = exchangeCode(queryClient, code)
  history.replaceState(null, '', location.pathname + location.search)
  return exchange
}

async function exchangeCode(queryClient: QueryClient, code: string): Promise<void> {
  try {
    queryClient.setQueryData(queries.caller().queryKey, await api.createSession({ code }))
  } catch {
    // The code may be used up while the session of it is still valid: the next call will tell.
  }
}
