import { Option, type Command } from 'commander'
import { permissions, roles, type Permission, type Role } from '../../api/permissions.ts'
import { parseDuration } from '../../check/units.ts'
import { checkOneOf } from '../../check/keys.ts'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { toMs } from '../../letter/time.ts'
import type { TokenInfo, Tokens, TokenWithSecret } from '../../server/tokens.ts'
import { collect, readFutureTime } from '../filter.ts'
import { withStore, type GlobalOptions } from '../open.ts'
import { findServer, refuseName, type Server } from '../remote/server.ts'
import {
  escapeLine,
  formatRelativeTime,
  formatTable,
  lineWidth,
  printEither,
  toJson,
} from '../print.ts'
import { userName } from '../user-name.ts'
import { terminal } from '../terminal.ts'

interface CreateOptions extends GlobalOptions {
  role?: Role
  permission?: string[]
  queue?: string[]
  tenant?: string[]
  expires?: string
  by?: string
}

interface RotateOptions extends GlobalOptions {
  overlap?: string
}

const examples = `
Examples:
  redrive tokens create grafana --role viewer
  redrive tokens create mia --role operator --queue charge-card --expires 30d
  redrive tokens create ci --permission letter:read --permission letter:retry
  redrive tokens list
  redrive tokens rotate PwQx7bkZ0aTe --overlap 1h
  redrive tokens revoke PwQx7bkZ0aTe

A token is printed once. The store has only a hash of it.`

export function addTokens(program: Command): void {
  const tokens = program
    .command('tokens')
    .description('create, list, rotate and revoke tokens of the server')
    .addHelpText('after', examples)
  addCreate(tokens)
  tokens
    .command('list')
    .description('list the tokens of a store, without their secrets')
    .action((_, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withTokens(options, async (stored, clock) => {
        const all = await stored.list()
        if (options.json) for (const one of all) terminal.stdout.write(`${toJson(one)}\n`)
        else terminal.stdout.write(formatTokens(all, clock.now()))
      })
    })
  tokens
    .command('rotate')
    .argument('<id>', 'id of the token')
    .description('give a token a new secret')
    .option('--overlap <duration>', 'how long the old secret stays valid, at most 24h')
    .action((id: string, _, self: Command) => {
      const options = self.optsWithGlobals<RotateOptions>()
      return withTokens(options, async (stored) => {
        printToken(options, await stored.rotate(id, readOverlap(options.overlap), userName()))
      })
    })
  tokens
    .command('revoke')
    .argument('<id>', 'id of the token')
    .description('revoke a token: it has no effect from now on')
    .action((id: string, _, self: Command) => {
      const options = self.optsWithGlobals<GlobalOptions>()
      return withTokens(options, async (stored) => {
        const revoked = await stored.revoke(id, userName())
        printEither(options, revoked, `${escapeLine(revoked.name)} (${id}) is revoked.\n`)
      })
    })
}

function addCreate(tokens: Command): void {
  tokens
    .command('create')
    .argument('<name>', 'name of the person or program, for the history of letters')
    .description('create a token and print it')
    .addOption(new Option('--role <role>', 'what the token may do').choices(roles))
    .option('--permission <name>', 'instead of a role; may be repeated', collect)
    .option('-q, --queue <name>', 'only this queue; may be repeated', collect)
    .option('--tenant <name>', 'only this tenant; may be repeated', collect)
    .option('--expires <time>', 'a duration such as 30d, or a timestamp')
    .option('--by <name>', 'your name')
    .action((name: string, _, self: Command) => {
      const options = self.optsWithGlobals<CreateOptions>()
      const { role, permission, queue, tenant, expires, by = userName() } = options
      if (permission) checkOneOf('permission', permission, permissions)
      return withTokens(options, async (stored, clock) => {
        const created = await stored.create({
          name,
          createdBy: by,
          ...(role ? { role } : {}),
          ...(permission ? { permissions: permission as Permission[] } : {}),
          ...(queue ? { queues: queue } : {}),
          ...(tenant ? { tenants: tenant } : {}),
          ...(expires === undefined
            ? {}
            : { expiresAt: readFutureTime('--expires', expires, clock.now()) }),
        })
        printToken(options, created)
      })
    })
}

/** Loading the tokens takes longer than the other commands need. */
async function withTokens(
  options: GlobalOptions & { by?: string },
  use: (tokens: TokenAccess, clock: Clock) => Promise<void>,
): Promise<void> {
  const server = await findServer(options)
  if (server) {
    refuseName(options)
    return use(remoteTokens(server), systemClock)
  }
  const { Tokens } = await import('../../server/tokens.ts')
  return withStore('tokens', options, ({ store, clock }) =>
    use(new Tokens({ store, clock }), clock),
  )
}

type TokenAccess = Pick<Tokens, 'create' | 'list' | 'rotate' | 'revoke'>

/** The tokens of a server. It takes the name of the person from the token of the caller. */
function remoteTokens({ client }: Server): TokenAccess {
  return {
    create: (given) => {
      const { createdBy: _, ...token } = given
      return client.createToken(token)
    },
    list: () => client.listTokens(),
    rotate: (id, overlapMs) =>
      client.rotateToken({ id, ...(overlapMs === undefined ? {} : { overlapMs }) }),
    revoke: (id) => client.revokeToken({ id }),
  }
}

function readOverlap(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  if (ms !== undefined) return ms
  throw new RedriveError('INVALID_INPUT', `--overlap must be a duration such as 1h, got "${text}"`)
}

function printToken(options: GlobalOptions, created: TokenWithSecret): void {
  const { token, info } = created
  const until =
    info.oldSecretUntil === undefined ? '' : ` The old one is valid until ${info.oldSecretUntil}.`
  const text = `${token}\n\nThis is the token of ${escapeLine(info.name)} (${info.id}).${until} Keep it: it is not shown again.\n`
  printEither(options, created, text)
}

function formatTokens(tokens: readonly TokenInfo[], nowMs: number): string {
  if (tokens.length === 0)
    return 'There are no tokens. redrive tokens create NAME --role viewer creates one.\n'
  const ago = (at: string | undefined): string =>
    at === undefined ? '' : formatRelativeTime(toMs(at), nowMs)
  const lines = formatTable<TokenInfo>(
    [
      { title: 'ID', cell: ({ id }) => escapeLine(id) },
      { title: 'NAME', cell: ({ name }) => escapeLine(name), minWidth: 8 },
      {
        title: 'RIGHTS',
        cell: ({ role, permissions: given = [] }) => role ?? given.join(', '),
        minWidth: 8,
      },
      { title: 'SCOPE', cell: (token) => escapeLine(scopeOf(token)), minWidth: 5 },
      { title: 'USED', cell: ({ lastUsedAt }) => ago(lastUsedAt) },
      { title: 'EXPIRES', cell: ({ expiresAt }) => ago(expiresAt) },
    ],
    tokens,
    lineWidth(),
  )
  return `${lines.join('\n')}\n`
}

function scopeOf({ queues, tenants }: TokenInfo): string {
  const parts = [
    ...(queues ? [`queue ${queues.join(', ')}`] : []),
    ...(tenants ? [`tenant ${tenants.join(', ')}`] : []),
  ]
  return parts.length === 0 ? 'all' : parts.join('; ')
}
