import { RedriveError } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** What the server's reply codes mean for whoever reads them. */
const advice: Record<number, string> = {
  312: 'nothing takes messages of this name',
  320: 'the server closed the connection',
  402: 'the virtual host is not there',
  403: 'the server does not accept this user and password, or the user may not do this',
  404: 'the queue or exchange is not there',
  405: 'somebody else uses the queue alone',
  530: 'the virtual host is not there, or this user may not use it',
}

/** Turns whatever the client rejected with into an error of ours. The one place that knows its errors. */
export function toRedriveError(error: unknown, place: string): RedriveError {
  if (error instanceof RedriveError) return error
  const { code, message } = errorLike(error)
  const options = { cause: error }
  if (code === 406)
    return new RedriveError(
      'INVALID_CONFIG',
      `rabbitmq ${place}: the queue is there with other settings; remove it, or use it as it is with declare: false (${message})`,
      options,
    )
  const known = typeof code === 'number' ? advice[code] : unreachable(error)
  const what = known ?? 'the server failed'
  return new RedriveError('MAILBOX_UNAVAILABLE', `rabbitmq ${place}: ${what} (${message})`, options)
}

/** Some errors have no message, and some are several. */
function errorLike(error: unknown): { code: unknown; message: string } {
  if (error instanceof AggregateError && error.message === '')
    return errorLike(error.errors.at(-1) ?? new Error('no reason given'))
  if (!(error instanceof Error)) return { code: undefined, message: String(error) }
  // The handshake tells its code in the text alone.
  const code = 'code' in error ? error.code : Number(/\b(\d{3}) \(/.exec(error.message)?.[1])
  return { code, message: error.message || error.name }
}
