import type { Command } from 'commander'
import type { ConfigOptions } from '../open.ts'

const examples = `
Examples:
  redrive config check                      redrive.yaml, if there is one here
  redrive config check deploy/redrive.yaml
  redrive config check --set maxRetries=5   what would be in force
  redrive config schema > redrive.schema.json

check exits with 0 when all is well and with 2 when it is not; it prints every
value in force and where it comes from, secrets aside.
With --json it prints {"ok", "file", "settings": [{"key", "value", "from"}]},
or {"ok": false, "problems": [{"key", "from", "text"}]}.`

/** Adds the flags of the configuration. */
export function takingConfig(command: Command): Command {
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
  takingConfig(config.command('check'))
    .argument('[file]', 'the same as --config')
    .description('print the effective values and their origins, or all problems')
    .addHelpText('after', examples)
    .action(async (file: string | undefined, _, self: Command) => {
      const options = self.optsWithGlobals<ConfigOptions>()
      const { checkConfig } = await import('../configured.ts')
      checkConfig(file === undefined ? options : { ...options, config: file })
    })
  config
    .command('schema')
    .description('print the JSON Schema of the configuration, for editors')
    .action(async () => (await import('../configured.ts')).printSchema())
}
