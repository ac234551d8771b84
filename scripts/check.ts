// npm run check: the checks of `npm test`, without its tests.
import { runChecks } from './test/checks.ts'
import { Phases } from './test/phases.ts'

const { failed } = await runChecks(new Phases())
for (const name of failed) console.error(`failed: ${name}`)
if (failed.length > 0) process.exitCode = 1
