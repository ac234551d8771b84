import type { Clock } from '../clock/clock.ts'
import type { Handler } from '../redelivery/run.ts'
import { commandHandler, type CommandTarget } from './command.ts'
import { httpHandler, type HttpTarget } from './http.ts'
import { mailboxHandler, type MailboxTarget } from './mailbox.ts'

/** A handler from the configuration. `close` releases its connections, if it has any. */
export function handlerOf(
  target: { http: HttpTarget } | { command: CommandTarget } | { mailbox: MailboxTarget },
  clock: Clock,
): Handler & { close?: () => Promise<void> } {
  if ('http' in target) return httpHandler(target.http, clock)
  if ('mailbox' in target) return mailboxHandler(target.mailbox, clock)
  return commandHandler(target.command, clock)
}
