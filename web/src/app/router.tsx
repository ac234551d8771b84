import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { isSignedOut } from '../api/client.ts'
import { queries } from '../api/queries.ts'
import { parseBulkActionSearch, parseBulkActionsSearch } from '../pages/bulk/bulk-search.ts'
import { parseOverviewSearch } from '../pages/overview/ranges.ts'
import { parseGroupSearch, parseGroupsSearch } from '../pages/groups/groups-search.ts'
import { parseLetterSearch } from '../pages/letter/letter-search.ts'
import { filterOf, parseLettersSearch, withOrder } from '../pages/letters/letters-search.ts'
import { SkeletonRows } from '../ui/loading.tsx'
import { atMost } from './at-most.ts'
import { NotFound, RouteProblem } from './route-states.tsx'
import { parseSearch, stringifySearch } from './search-params.ts'
import { signInByAddress } from './sign-in-code.ts'
import { SignedIn } from './signed-in.tsx'

const root = createRootRouteWithContext<{ queryClient: QueryClient }>()({
  component: Outlet,
  notFoundComponent: NotFound,
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: ({ next }: Record<string, unknown>): { next?: string } =>
    // Another site must not be able to choose where a sign-in leads.
    typeof next === 'string' && /^\/(?!\/|\\)/.test(next) ? { next } : {},
  component: lazyRouteComponent(() => import('../pages/sign-in/sign-in-page.tsx'), 'SignInPage'),
})

/** How long the page of letters waits for its rows. */
const rowsMs = 200

/** Every page but the one to sign in. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  component: SignedIn,
  beforeLoad: async ({ context: { queryClient }, location }) => {
    await signInByAddress(queryClient)
    try {
      await queryClient.ensureQueryData(queries.caller())
    } catch (error) {
      if (!isSignedOut(error)) throw error
      throw redirect({ to: '/sign-in', search: { next: location.href } })
    }
  },
})

/** The search of a page with one field that finds a row by its name. */
const parseName = ({ name }: Record<string, unknown>): { name?: string } =>
  typeof name === 'string' && name !== '' ? { name } : {}

const parseAuditSearch = ({
  actor,
  what,
}: Record<string, unknown>): { actor?: string; what?: string } => ({
  ...(typeof actor === 'string' && actor !== '' ? { actor } : {}),
  ...(typeof what === 'string' && what !== '' ? { what } : {}),
})

const inApp = { getParentRoute: () => signedIn } as const

const routes = [
  createRoute({
    ...inApp,
    path: '/',
    validateSearch: parseOverviewSearch,
    component: lazyRouteComponent(
      () => import('../pages/overview/overview-page.tsx'),
      'OverviewPage',
    ),
  }),
  createRoute({
    ...inApp,
    path: '/letters',
    validateSearch: parseLettersSearch,
    loaderDeps: ({ search }) => search,
    // A list that comes at once is drawn at once, without a skeleton before it.
    loader: async ({ context: { queryClient }, deps: search, cause }) => {
      if (search.words !== undefined) return
      const input = withOrder(filterOf(search, Date.now()), search)
      const reading = queryClient.prefetchInfiniteQuery(queries.letters(input))
      if (cause === 'enter') await atMost(rowsMs, reading)
    },
    component: lazyRouteComponent(() => import('../pages/letters/letters-page.tsx'), 'LettersPage'),
  }),
  createRoute({
    ...inApp,
    path: '/letters/$id',
    validateSearch: parseLetterSearch,
    component: lazyRouteComponent(() => import('../pages/letter/letter-page.tsx'), 'LetterPage'),
  }),
  createRoute({
    ...inApp,
    path: '/groups',
    validateSearch: parseGroupsSearch,
    component: lazyRouteComponent(() => import('../pages/groups/groups-page.tsx'), 'GroupsPage'),
  }),
  createRoute({
    ...inApp,
    path: '/groups/$fingerprint',
    validateSearch: parseGroupSearch,
    component: lazyRouteComponent(() => import('../pages/groups/group-page.tsx'), 'GroupPage'),
  }),
  createRoute({
    ...inApp,
    path: '/bulk-actions',
    validateSearch: parseBulkActionsSearch,
    component: lazyRouteComponent(
      () => import('../pages/bulk/bulk-actions-page.tsx'),
      'BulkActionsPage',
    ),
  }),
  createRoute({
    ...inApp,
    path: '/bulk-actions/$id',
    validateSearch: parseBulkActionSearch,
    component: lazyRouteComponent(
      () => import('../pages/bulk/bulk-action-page.tsx'),
      'BulkActionPage',
    ),
  }),
  createRoute({
    ...inApp,
    path: '/queues',
    validateSearch: parseName,
    component: lazyRouteComponent(() => import('../pages/queues/queues-page.tsx'), 'QueuesPage'),
  }),
  createRoute({
    ...inApp,
    path: '/queues/$queue',
    component: lazyRouteComponent(() => import('../pages/queues/queue-page.tsx'), 'QueuePage'),
  }),
  createRoute({
    ...inApp,
    path: '/pipeline',
    component: lazyRouteComponent(
      () => import('../pages/queues/pipeline-page.tsx'),
      'PipelinePage',
    ),
  }),
  createRoute({
    ...inApp,
    path: '/workers',
    component: lazyRouteComponent(() => import('../pages/queues/workers-page.tsx'), 'WorkersPage'),
  }),
  createRoute({
    ...inApp,
    path: '/mailboxes',
    component: lazyRouteComponent(
      () => import('../pages/queues/mailboxes-page.tsx'),
      'MailboxesPage',
    ),
  }),
  createRoute({
    ...inApp,
    path: '/alerts',
    component: lazyRouteComponent(() => import('../pages/alerts/alerts-page.tsx'), 'AlertsPage'),
  }),
  createRoute({
    ...inApp,
    path: '/settings',
    validateSearch: parseName,
    component: lazyRouteComponent(
      () => import('../pages/settings/settings-page.tsx'),
      'SettingsPage',
    ),
  }),
  createRoute({
    ...inApp,
    path: '/settings/tokens',
    component: lazyRouteComponent(() => import('../pages/settings/tokens-page.tsx'), 'TokensPage'),
  }),
  createRoute({
    ...inApp,
    path: '/settings/audit',
    validateSearch: parseAuditSearch,
    component: lazyRouteComponent(() => import('../pages/settings/audit-page.tsx'), 'AuditPage'),
  }),
] as const

const routeTree = root.addChildren([signIn, signedIn.addChildren([...routes])])

export function createAppRouter(queryClient: QueryClient) {
  return createRouter({
    routeTree,
    context: { queryClient },
    parseSearch,
    stringifySearch,
    defaultPreload: 'intent',
    // Answers of the server are kept by the query client.
    defaultPreloadStaleTime: 0,
    defaultPendingComponent: SkeletonRows,
    defaultErrorComponent: RouteProblem,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createAppRouter>
  }
}
