import type { PackedLetter } from '../../src/stores/rows/form.ts'
import { serve } from '../../src/backends/sqlite/serve.ts'
import { openRaw } from './sqlite-raw.ts'

/** The thread of a store, with nothing in it but the raw loop. */
serve((options, report) => {
  const raw = openRaw((options as { path: string }).path)
  return {
    run: (_, [call]) => {
      raw.transaction([call![2] as PackedLetter])
      report({ results: [], errors: [], events: [], isDone: true })
    },
    close: () => raw.close(),
  }
})
