import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { ProblemError } from 'redrive/api'
import { isSignedOut } from './client.ts'

const maxTries = 3

/**
 * The data of the server as this page has read it. The live feed tells what has changed, so that
 * nothing is read again only because time passes, except what the feed does not cover.
 */
export function createQueryClient(onSignedOut: () => void): QueryClient {
  const onError = (error: unknown): void => {
    if (isSignedOut(error)) onSignedOut()
  }
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        refetchOnWindowFocus: true,
        retry: (failures, error) => failures < maxTries && isTemporary(error),
      },
      mutations: { retry: false },
    },
  })
}

/** Whether the same request may succeed later: there was no answer, or the answer says so. */
function isTemporary(error: unknown): boolean {
  return error instanceof ProblemError ? error.problem.retry : true
}
