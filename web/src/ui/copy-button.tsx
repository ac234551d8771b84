import { Button, type ButtonProps } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'

/** Copies a string. The label says when it is copied. */
export function CopyButton({
  text,
  label = 'Copy',
  ...props
}: { text: string | (() => string); label?: string } & ButtonProps) {
  const clipboard = useClipboard({ timeout: 1500 })
  return (
    <Button
      variant="default"
      {...props}
      onClick={() => clipboard.copy(typeof text === 'function' ? text() : text)}
    >
      {clipboard.copied ? 'Copied' : label}
    </Button>
  )
}
