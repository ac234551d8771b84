import { forwardRef } from 'react'
import { Button, type ButtonProps } from '@mantine/core'
import { createLink } from '@tanstack/react-router'

const AnchorButton = forwardRef<HTMLAnchorElement, ButtonProps & { children?: React.ReactNode }>(
  function AnchorButton(props, ref) {
    return <Button ref={ref} component="a" {...props} />
  },
)

/** A link to another page that looks like a button. */
export const ButtonLink = createLink(AnchorButton)
