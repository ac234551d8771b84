import { RedriveError } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** Explanations of the reply codes of the server. */
const advice: Record<number, string> = {
  312: 'no queue is bound for this routing key',
  320: 'the server closed the connection',
  402: 'the virtual host does not exist',
  403: 'the server rejects this user and password, or the user lacks the permission',
  404: 'the queue or exchange does not exist',
  405: 'another connection uses the queue exclusively',
  530: 'the virtual host does not exist, or this user lacks access to it',
}

/** Translates an error of the client. The only place that knows its errors. */
export function toRedriveError(error: unknown, place: string): RedriveError {
  if (error instanceof RedriveError) return error
  const { code, message } = errorLike(error)
  const options = { cause: error }
  if (code === 406)
    return new RedriveError(
      'INVALID_CONFIG',
      `rabbitmq ${place}: the queue exists with other settings; delete it, or use it as it is with declare: false (${message})`,
      options,
    )
  const omitNullish = typeof code === 'number' ? advice[code] : unreachable(error)
  const what = omitNullish ?? 'the server failed'
  return new RedriveError('MAILBOX_UNAVAILABLE', `rabbitmq ${place}: ${what} (${message})`, options)
}

/** Some errors have no message, and some contain several errors. */
function errorLike(error: unknown): { code: unknown; message: string } {
  if (error instanceof AggregateError && error.message === '')
    return errorLike(error.errors.at(-1) ?? new Error('no reason given'))
  if (!(error instanceof Error)) return { code: undefined, message: String(error) }
  // Errors of the handshake have their code in the message only.
  const code = 'code' in error ? error.code : Number(/\b(\d{3}) \(/.exec(error.message)?.[1])
  return { code, message: error.message || error.name }
}
