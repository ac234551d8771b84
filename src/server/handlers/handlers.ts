import { auditHandlers } from './audit.ts'
import { bulkHandlers } from './bulk.ts'
import { captureHandlers } from './capture.ts'
import { erasureHandlers } from './erasures.ts'
import { eventHandlers } from './events.ts'
import { groupHandlers } from './groups.ts'
import type { Handlers } from './handler.ts'
import { keyHandlers } from './keys.ts'
import { letterHandlers } from './letters.ts'
import { pipelineHandlers } from './pipeline.ts'
import { queueHandlers } from './queues.ts'
import { reportHandlers } from './reports.ts'
import { seriesHandlers } from './series.ts'
import { sessionHandlers } from './session.ts'
import { systemHandlers } from './system.ts'
import { tokenHandlers } from './tokens.ts'
import { transferHandlers } from './transfer.ts'
import { viewHandlers } from './views.ts'
import { workerHandlers } from './workers.ts'

/** The handler of each endpoint. */
export const handlers: Handlers = {
  ...letterHandlers,
  ...viewHandlers,
  ...captureHandlers,
  ...transferHandlers,
  ...groupHandlers,
  ...bulkHandlers,
  ...queueHandlers,
  ...reportHandlers,
  ...seriesHandlers,
  ...pipelineHandlers,
  ...tokenHandlers,
  ...auditHandlers,
  ...erasureHandlers,
  ...keyHandlers,
  ...sessionHandlers,
  ...eventHandlers,
  ...workerHandlers,
  ...systemHandlers,
}
