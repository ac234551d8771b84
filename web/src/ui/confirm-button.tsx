import { useState } from 'react'
import { Button, Group, Text, type ButtonProps } from '@mantine/core'

function focus(button: HTMLButtonElement | null): void {
  button?.focus()
}

/** A button that asks once before it acts. The question is in the place of the button. */
export function ConfirmButton({
  label,
  question,
  confirm,
  onConfirm,
  ...props
}: {
  label: string
  question: string
  /** What the second button says: the action, with its number. */
  confirm: string
  onConfirm: () => void
} & ButtonProps) {
  const [isAsking, setAsking] = useState(false)
  if (!isAsking)
    return (
      <Button variant="default" {...props} onClick={() => setAsking(true)}>
        {label}
      </Button>
    )
  return (
    <Group gap={8} role="alertdialog" aria-label={question}>
      <Text size="sm">{question}</Text>
      <Button
        color="red"
        ref={focus}
        onClick={() => {
          setAsking(false)
          onConfirm()
        }}
      >
        {confirm}
      </Button>
      <Button variant="default" onClick={() => setAsking(false)}>
        Keep it
      </Button>
    </Group>
  )
}
