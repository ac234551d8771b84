import { Dispatcher } from '../../backends/sqlite/dispatcher.ts'
import { serve } from '../../backends/sqlite/serve.ts'
import type { DatabaseOptions } from './database.ts'
import { storeService } from './store-service.ts'

serve((options, report) => new Dispatcher(storeService(options as DatabaseOptions), report))
