import type { CommandTarget } from '../targets/command.ts'
import { targetProblem, type HttpTarget } from '../targets/http.ts'
import type { MailboxTarget } from '../targets/mailbox.ts'
import { keyForm, parseKey, type ConfiguredKeys } from '../check/encryption-keys.ts'
import { withoutUndefined } from '../check/keys.ts'
import { email } from '../observers/notify/email.ts'
import { pagerduty } from '../observers/notify/pagerduty.ts'
import { slack } from '../observers/notify/slack.ts'
import type { Target } from '../observers/notify/target.ts'
import { webhook } from '../observers/notify/webhook.ts'
import type { ConfigData } from './schema.ts'
import type { Path } from './layer.ts'
import type { GivenSecret, Secrets } from './secrets.ts'

/** How the letters of a queue are redelivered, with secrets filled in. */
export type HandlerTarget =
  | { http: HttpTarget }
  | { command: CommandTarget }
  | { mailbox: MailboxTarget }

/** The configured handlers, with secrets filled in. Problems are added to those of `secrets`. */
export function targetsOf(
  handlers: ConfigData['handlers'] = {},
  secrets: Secrets,
): Map<string, HandlerTarget> {
  const targets = new Map<string, HandlerTarget>()
  for (const [queue, { http, command, mailbox }] of Object.entries(handlers)) {
    if (command)
      targets.set(queue, {
        command: Array.isArray(command) ? { run: command } : (command as CommandTarget),
      })
    if (mailbox) {
      const { url } = mailbox
      const path = ['handlers', queue, 'mailbox', 'url']
      targets.set(queue, { mailbox: { url: mailboxUrlOf(url, path, secrets) } })
    }
    if (!http) continue
    const { url, timeoutMs, private: inside, secret, headers = {} } = http
    const at = ['handlers', queue, 'http']
    const revealed = Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : secrets.reveal(value, [...at, 'headers', name]),
    ])
    const target: HttpTarget = {
      url,
      headers: Object.fromEntries(revealed) as Record<string, string>,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(inside === undefined ? {} : { private: inside }),
      ...(secret === undefined ? {} : { secret: secrets.reveal(secret, [...at, 'secret']) }),
    }
    targets.set(queue, { http: target })
    const problem = targetProblem(target)
    if (problem) secrets.reject([...at, ...problem.path], problem.text)
  }
  return targets
}

/**
 * The mailboxes that letters are replayed to, except those whose secret is missing. Undefined if
 * none are configured.
 */
export function mailboxesOf(
  mailboxes: ConfigData['mailboxes'],
  secrets: Secrets,
): Record<string, string> | undefined {
  if (!mailboxes) return undefined
  const all = Object.entries(mailboxes).map(
    ([name, url]) => [name, mailboxUrlOf(url, ['mailboxes', name], secrets)] as const,
  )
  return Object.fromEntries(all.filter(([, url]) => url !== ''))
}

function mailboxUrlOf(url: string | GivenSecret, path: Path, secrets: Secrets): string {
  const revealed = typeof url === 'string' ? url : secrets.reveal(url, path)
  if (revealed !== '' && !/^[a-z]+:.*#./is.test(revealed))
    secrets.reject(path, 'must be a URL and a name, such as sqlite:mail.db#requests')
  return revealed
}

type NotifyData = NonNullable<ConfigData['notify']>[string]

/** Where alerts are sent, by name. Targets with a problem are left out. */
export function notifyOf(
  given: ConfigData['notify'] = {},
  secrets: Secrets,
): Record<string, Target> {
  const targets: Record<string, Target> = {}
  for (const [name, data] of Object.entries(given)) {
    const path = ['notify', name]
    const problems = secrets.problems.length
    const create = targetOf(data, path, secrets)
    if (secrets.problems.length > problems) continue
    try {
      targets[name] = create()
    } catch (error) {
      secrets.reject(path, (error as Error).message)
    }
  }
  return targets
}

function targetOf(data: NotifyData, path: Path, secrets: Secrets): () => Target {
  const { webhook: hook, slack: chat, pagerduty: pager, email: mail, ...all } = data
  const common = withoutUndefined(all)
  if (hook) {
    const at = [...path, 'webhook']
    const { secret, headers = {}, ...rest } = withoutUndefined(hook)
    const keys = [secret ?? []].flat().map((one) => secrets.reveal(one, [...at, 'secret']))
    const revealed = Object.entries(headers).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : secrets.reveal(value, [...at, 'headers', key]),
    ])
    const own = { secret: keys, headers: Object.fromEntries(revealed) as Record<string, string> }
    return () => webhook({ ...common, ...rest, ...own })
  }
  if (chat) {
    const url = secrets.reveal(chat.url, [...path, 'slack', 'url'])
    return () => slack({ ...common, ...withoutUndefined(chat), url })
  }
  if (pager) {
    const routingKey = secrets.reveal(pager.routingKey, [...path, 'pagerduty', 'routingKey'])
    const own = withoutUndefined(pager)
    return () => pagerduty({ ...common, ...own, routingKey })
  }
  const url = secrets.reveal(mail!.url, [...path, 'email', 'url'])
  return () => email({ ...common, ...withoutUndefined(mail!), url })
}

/** The keys, except those whose secret is missing. Undefined: none are configured. */
export function encryptionOf(
  given: ConfigData['encryption'],
  secrets: Secrets,
): ConfiguredKeys | undefined {
  if (!given) return undefined
  const { current, keys: sources } = given
  const keys: Record<string, string> = {}
  for (const [id, secret] of Object.entries(sources)) {
    const path = ['encryption', 'keys', id]
    const key = secrets.reveal(secret, path)
    if (parseKey(key)) keys[id] = key
    else if (key !== '') secrets.reject(path, keyForm)
  }
  if (!Object.hasOwn(sources, current))
    secrets.reject(['encryption', 'current'], 'must be the id of one of the keys')
  return Object.hasOwn(keys, current) ? { current, keys } : undefined
}
