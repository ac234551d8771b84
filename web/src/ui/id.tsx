import { UnstyledButton } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { shortenId } from '../format/text.ts'

/** An id, shortened. A click copies the whole of it. */
export function Id({ id, whole = false }: { id: string; whole?: boolean }) {
  const clipboard = useClipboard({ timeout: 1500 })
  const text = clipboard.copied ? 'copied' : whole ? id : shortenId(id)
  return (
    <UnstyledButton
      className="mono"
      fz={12}
      title={clipboard.copied ? 'Copied' : `${id}: click to copy`}
      aria-label={`Copy ${text}`}
      onClick={(event) => {
        event.preventDefault()
        event.stopPropagation()
        clipboard.copy(id)
      }}
    >
      {text}
    </UnstyledButton>
  )
}
