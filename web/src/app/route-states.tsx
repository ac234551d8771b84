import { Code } from '@mantine/core'
import { useRouter, useRouterState } from '@tanstack/react-router'
import { ButtonLink } from '../ui/button-link.tsx'
import { Empty } from '../ui/empty.tsx'
import { Problem } from '../ui/problem.tsx'

/** A page that could not be shown. */
export function RouteProblem({ error }: { error: unknown }) {
  const router = useRouter()
  return <Problem error={error} onRetry={() => void router.invalidate()} />
}

export function NotFound() {
  const path = useRouterState({ select: ({ location }) => location.pathname })
  return (
    <Empty title="There is no such page" action={<ButtonLink to="/">Open the overview</ButtonLink>}>
      The dashboard has no page <Code>{path.slice(0, 200)}</Code>.
    </Empty>
  )
}
