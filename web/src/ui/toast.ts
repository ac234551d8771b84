import { notifications } from '@mantine/notifications'
import { problemText } from './problem.tsx'

/** Says that something happened that the page does not show by itself. */
export function showDone(message: string): void {
  notifications.show({ message, autoClose: 4000, withCloseButton: true })
}

/** Says that an action failed. It stays until the reader closes it. */
export function showProblem(error: unknown): void {
  notifications.show({ message: problemText(error), color: 'red', autoClose: false })
}
