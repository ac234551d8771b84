import { basename } from 'node:path'
import { configJsonSchema } from '../config/json-schema.ts'
import { examineConfig, type Config, type ConfigSources } from '../config/load.ts'
import { invalidConfig, formatProblem } from '../config/problems.ts'
import { readTextFile } from '../config/read-file.ts'
import { inKeyUnits } from '../config/reference.ts'
import type { Setting } from '../config/settings.ts'
import { errorTable } from '../errors.ts'
import { hideSecrets, type ConfigOptions, type GlobalOptions } from './open.ts'
import { formatCount, printDocument, escapeLine, lineWidth, paint, formatTable } from './print.ts'
import { terminal } from './terminal.ts'

/** The configuration sources of a command with these flags. */
export function sourcesOf({ config, set = [], store }: ConfigOptions): ConfigSources {
  return {
    ...(config === undefined ? {} : { file: config }),
    env: terminal.env,
    flags: { set, ...(store === undefined ? {} : { store }) },
    read: readTextFile,
  }
}

/** Prints the effective configuration, or its problems. */
export function checkConfig(options: ConfigOptions): void {
  const examined = examineConfig(sourcesOf(options))
  if ('config' in examined) return printConfig(examined.config, options)
  if (!options.json) throw invalidConfig(examined.problems)
  printDocument(options, { ok: false, problems: examined.problems })
  terminal.stderr.write(
    `${examined.problems.map((one) => escapeLine(formatProblem(one))).join('\n')}\n`,
  )
  terminal.exitCode = errorTable.INVALID_CONFIG.exit
}

/** Keys with URLs, which may contain a password or a token. */
const urls = /^(store|search|handlers\..*\.(http|mailbox)\.url|mailboxes\..*|notify\..*\.url)$/

/** The settings without the passwords and tokens of URLs. */
export function hideSettingSecrets(settings: readonly Setting[]): Setting[] {
  return settings.map(({ value, ...rest }) => ({
    ...rest,
    value: typeof value === 'string' && urls.test(rest.key) ? hideSecrets(value) : value,
  }))
}

function printConfig({ settings, file, handlers }: Config, options: ConfigOptions): void {
  const redacted = hideSettingSecrets(settings).map(({ key, value, from }) => ({
    key,
    value,
    from,
  }))
  if (options.json)
    return printDocument(options, { ok: true, file: file ?? null, settings: redacted })
  const rows = formatTable<Setting>(
    [
      { title: 'key', cell: ({ key }) => escapeLine(key), minWidth: 12 },
      {
        title: 'from',
        // The origin is the most important part, and would be cut off first.
        cell: ({ from }) => escapeLine(shortenOrigin(from, file)),
        minWidth: 10,
        style: ({ from }) => (from === 'default' ? 'dim' : undefined),
      },
      {
        title: 'value',
        cell: ({ key, value }) => escapeLine(toText(inKeyUnits(key, value))),
        minWidth: 10,
      },
    ],
    redacted,
    lineWidth(),
  )
  const verdict = `The configuration is valid: ${formatCount(handlers.size, 'handler')}.`
  terminal.stdout.write(`${rows.join('\n')}\n${paint('green', verdict)}\n`)
}

/** An origin in the configuration file, without the folder. */
function shortenOrigin(from: string, file: string | undefined): string {
  return file !== undefined && from.startsWith(`${file}:`)
    ? basename(file) + from.slice(file.length)
    : from
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export function printSchema(options: GlobalOptions): void {
  printDocument(options, configJsonSchema())
}
