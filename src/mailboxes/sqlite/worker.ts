import { serve } from '../../backends/sqlite/serve.ts'
import { Clerk } from './clerk.ts'

serve((path, report) => new Clerk(path as string, report))
