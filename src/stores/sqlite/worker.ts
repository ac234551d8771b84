import { serve } from '../../backends/sqlite/serve.ts'
import { Clerk } from './clerk.ts'
import type { DatabaseOptions } from './database.ts'

serve((options, report) => new Clerk(options as DatabaseOptions, report))
