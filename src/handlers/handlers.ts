import type { Clock } from '../clock.ts'
import type { Handler } from '../redelivery/run.ts'
import { commandHandler, type CommandTarget } from './command.ts'
import { httpHandler, type HttpTarget } from './http.ts'

/** A handler that is described by data. */
export function handlerOf(
  target: { http: HttpTarget } | { command: CommandTarget },
  clock: Clock,
): Handler {
  return 'http' in target ? httpHandler(target.http, clock) : commandHandler(target.command, clock)
}
