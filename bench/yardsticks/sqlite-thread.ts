import type { PackedLetter } from '../../src/stores/rows/form.ts'
import { serve } from '../../src/backends/sqlite/serve.ts'
import { openRaw } from './sqlite-raw.ts'

/** A worker thread that runs only the raw loop. */
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
