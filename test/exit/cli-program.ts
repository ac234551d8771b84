// Runs `redrive list` on each of some stores, one after another in this process. Usage:
// `cli-program.ts URLS` (JSON). Prints each result as a line of JSON. Never calls process.exit: the
// process ends if no command has left anything open.
import { redrive } from '../cli/in-process.ts'

for (const url of JSON.parse(process.argv[2]!) as string[])
  console.log(JSON.stringify(await redrive(['list', '--store', url])))
