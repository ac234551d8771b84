#!/usr/bin/env node
import { explainWriteError } from './error-output.ts'
import { reportError, runCommand } from './run-command.ts'
import { terminal } from './terminal.ts'

/** The reader of our output may stop early, as `head` does. Any other write error is reported. */
terminal.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') terminal.exit(0)
  reportError(explainWriteError(error))
  terminal.exit()
})

await runCommand()
