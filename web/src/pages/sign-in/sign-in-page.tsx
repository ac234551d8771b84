import { useState } from 'react'
import {
  Anchor,
  Button,
  Center,
  Divider,
  Paper,
  PasswordInput,
  Stack,
  Text,
  Title,
} from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useRouter } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { problemText } from '../../ui/problem.tsx'

const route = getRouteApi('/sign-in')

/** Signs in with a token or at an identity provider. */
export function SignInPage() {
  const { next = '/' } = route.useSearch()
  const router = useRouter()
  const queryClient = useQueryClient()
  const [token, setToken] = useState('')
  const { data: methods } = useQuery(queries.signInMethods())
  const signIn = useMutation({
    mutationFn: () => api.createSession({ token: token.trim() }),
    onSuccess: (caller) => {
      queryClient.clear()
      queryClient.setQueryData(queries.caller().queryKey, caller)
      void router.navigate({ href: next })
    },
  })
  return (
    <Center mih="100vh" p={16}>
      <Paper withBorder p={24} w={400} maw="100%">
        <Stack gap={16}>
          <Title order={1}>Sign in to Redrive</Title>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              signIn.mutate()
            }}
          >
            <Stack gap={12}>
              <PasswordInput
                label="Token"
                description="An administrator creates tokens: redrive tokens create"
                value={token}
                onChange={({ currentTarget }) => setToken(currentTarget.value)}
                error={signIn.error ? problemText(signIn.error) : undefined}
                autoComplete="current-password"
                data-autofocus
                required
              />
              <Button type="submit" size="sm" loading={signIn.isPending}>
                Sign in
              </Button>
            </Stack>
          </form>
          {methods?.oidc && (
            <>
              <Divider label="or" />
              <Button component="a" href="/login/oidc" variant="default" size="sm">
                Sign in with your organization
              </Button>
            </>
          )}
          <Text size="xs" c="dimmed">
            A server that you have just started prints an address that signs you in. See{' '}
            <Anchor href="/docs/" size="xs">
              the documentation
            </Anchor>
            .
          </Text>
        </Stack>
      </Paper>
    </Center>
  )
}
