import { Dispatcher } from '../../backends/sqlite/dispatcher.ts'
import { serve } from '../../backends/sqlite/serve.ts'
import { mailService } from './mail-service.ts'

serve((path, report) => new Dispatcher(mailService(path as string), report))
