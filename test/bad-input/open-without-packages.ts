import { registerHooks } from 'node:module'

/*
 * Opens mailboxes as if packages were not installed. Usage: `open-without-packages.ts PACKAGES
 * URLS`, both as JSON. Prints the results as JSON. The packages are resolved from an empty folder,
 * so that Node itself fails to find them.
 */
const [missing, urls] = process.argv.slice(2).map((text) => JSON.parse(text) as string[])

registerHooks({
  resolve: (specifier, context, next) =>
    missing!.includes(specifier)
      ? next(specifier, { ...context, parentURL: 'file:///nowhere/at-all.js' })
      : next(specifier, context),
})

const { openMailbox } = await import('../../src/connect/mailbox.ts')

const outcomes: unknown[] = []
for (const url of urls!)
  try {
    const mailbox = await openMailbox(url)
    outcomes.push({ opened: mailbox.powers.kind })
    await mailbox.close()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    outcomes.push({ code, message })
  }
console.log(JSON.stringify(outcomes))
