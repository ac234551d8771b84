import type { Command } from 'commander'
import type { ConfigOptions, GlobalOptions } from '../open.ts'

const examples = `
Examples:
  redrive config check                      redrive.yaml, if there is one here
  redrive config check deploy/redrive.yaml
  redrive config check --set maxRetries=5   with this value
  redrive config schema > redrive.schema.json

check prints every effective value and its origin, without secrets. It exits
with 0 if the configuration is valid, and with 2 if it is not.
With --json it prints {"ok", "file", "settings": [{"key", "value", "from"}]},
or {"ok": false, "problems": [{"key", "from", "text"}]}.`

/** Adds the options --config and --set. */
export function addConfigOptions(command: Command): Command {
  return command
    .option('--config <file>', 'the file to read; default: REDRIVE_CONFIG or redrive.yaml')
    .option(
      '--set <key=value>',
      'set one key, such as --set maxRetries=5; may be repeated',
      (value: string, before: string[] | undefined) => [...(before ?? []), value],
    )
}

/** The schema is loaded on demand, so that other commands start faster. */
export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .description('check the configuration, or print its schema')
    .addHelpText('after', examples)
  addConfigOptions(config.command('check'))
    .argument('[file]', 'the same as --config')
    .description('print the effective values and their origins, or all problems')
    .addHelpText('after', examples)
    .action(async (file: string | undefined, _, self: Command) => {
      const options = self.optsWithGlobals<ConfigOptions>()
      const { checkConfig } = await import('../check-config.ts')
      checkConfig(file === undefined ? options : { ...options, config: file })
    })
  config
    .command('schema')
    .description('print the JSON Schema of the configuration, for editors')
    .action(async (_, self: Command) =>
      (await import('../check-config.ts')).printSchema(self.optsWithGlobals<GlobalOptions>()),
    )
}
