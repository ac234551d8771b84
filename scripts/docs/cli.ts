import { Command, type Help } from 'commander'

/** The page of all commands, from the help of the program. */
export async function cliPage(): Promise<string> {
  const program = await readProgram()
  const help = program.createHelp()
  return [
    '# Commands',
    '',
    'All commands and their options, as `redrive help` prints them. The [guide](../guides/cli.md)',
    'explains how letters are selected, the output for programs, and the exit codes.',
    '',
    'Every command has these options:',
    '',
    ...optionTable(program, help),
    ...program.commands.flatMap((command) => renderCommand(command, help)),
  ].join('\n')
}

/**
 * The program of the command line, which parses its arguments as soon as it is imported. Nothing
 * else of this process parses any, so that the method stays replaced.
 */
export async function readProgram(): Promise<Command> {
  const read = Promise.withResolvers<Command>()
  Command.prototype.parseAsync = async function (this: Command) {
    read.resolve(this)
    return this
  }
  await import('../../src/cli/main.ts')
  return read.promise
}

function renderCommand(command: Command, help: Help): string[] {
  const below = help.visibleCommands(command).filter((one) => one.name() !== 'help')
  return [
    '',
    `## ${help.commandUsage(command).split(' [options]')[0]!.split(' <')[0]!}`,
    '',
    `\`${help.commandUsage(command)}\``,
    '',
    escapeCell(sentence(help.commandDescription(command) || help.subcommandDescription(command))),
    '',
    ...optionTable(command, help),
    ...below.flatMap((one) => renderCommand(one, help)),
  ]
}

function optionTable(command: Command, help: Help): string[] {
  const rows = [
    ...help.visibleArguments(command).map((one) => [help.argumentTerm(one), one.description]),
    ...help
      .visibleOptions(command)
      .filter((one) => one.long !== '--help' || command.parent === null)
      .map((one) => [help.optionTerm(one), help.optionDescription(one)]),
  ]
  if (rows.length === 0) return []
  return [
    '| argument or option | effect |',
    '|---|---|',
    ...rows.map(([term = '', text = '']) => `| \`${term}\` | ${escapeCell(text)} |`),
  ]
}

function sentence(text: string): string {
  return text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1).replace(/\.?$/, '.')}`
}

/** Outside of code, Vue would read tags, and a bar would end the cell. */
function escapeCell(text: string): string {
  return text
    .replaceAll('<', '&lt;')
    .replaceAll('|', String.raw`\|`)
    .replaceAll('\n', ' ')
}
