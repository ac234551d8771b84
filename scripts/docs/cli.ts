import type { Command, Help } from 'commander'
import { createProgram } from '../../src/cli/run-command.ts'

/** The page of all commands, from the help of the program. */
export async function cliPage(): Promise<string> {
  const program = await createProgram([])
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
