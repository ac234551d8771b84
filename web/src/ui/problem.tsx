import { Button, Code, Group, Stack, Text } from '@mantine/core'
import { ProblemError } from 'redrive/api'
import { isForbidden } from '../api/client.ts'
import { CopyButton } from './copy-button.tsx'

/** Says what went wrong, what to do, and the id of the request in the log of the server. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { title, detail, advice, id } = describe(error)
  return (
    <Stack gap={8} role="alert" p={16} align="flex-start">
      <Text fw={600}>{title}</Text>
      <Text size="sm" className="wrap">
        {detail}
      </Text>
      <Text size="sm" c="dimmed">
        {advice}
      </Text>
      <Group gap={8}>
        {onRetry && <Button onClick={onRetry}>Try again</Button>}
        {id !== undefined && (
          <>
            <CopyButton text={id} label="Copy request id" />
            <Code>{id}</Code>
          </>
        )}
      </Group>
    </Stack>
  )
}

/** One line, for toasts and fields. */
export function problemText(error: unknown): string {
  const { title, detail } = describe(error)
  return `${title}: ${detail}`
}

interface Description {
  title: string
  detail: string
  advice: string
  id?: string
}

function describe(error: unknown): Description {
  if (!(error instanceof ProblemError))
    return {
      title: 'The server does not answer',
      detail: error instanceof Error ? error.message : String(error),
      advice: 'Check that the server runs and that you are connected to its network.',
    }
  const { problem } = error
  return {
    title: problem.title,
    detail: problem.detail,
    advice: adviceFor(error),
    ...(problem.requestId === undefined ? {} : { id: problem.requestId }),
  }
}

function adviceFor(error: ProblemError): string {
  if (isForbidden(error)) return 'Ask an administrator of this server for the permission.'
  const { status, retry } = error.problem
  if (status === 404) return 'It may have been removed. Check the address, or search for it.'
  if (status === 409 || status === 412) return 'Reload to see the current state, then try again.'
  if (retry) return 'This may be temporary: try again in a moment.'
  return status >= 500
    ? 'This is an error of the server: its log has the request id.'
    : 'Change the request as the message says.'
}
