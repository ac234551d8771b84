export { Pipeline, type LetterQueue, type PipelineOptions } from './pipeline.ts'
export { PipelineNode, type PipelineNodeOptions } from './node.ts'
export {
  dlqSettingsOf,
  graphsOf,
  readGraphs,
  type Graphs,
  type ModuleTarget,
} from './graph/graph.ts'
export type { GraphInput } from './graph/schema.ts'
export type { DlqSettings, Edge, NodeInput, NodeSettings } from './graph/settings.ts'
export type { DocumentInput, Module, ModuleCall, ModuleResult } from './modules/module.ts'
export { httpModule, type HttpModuleOptions } from './modules/http.ts'
export { grpcModule, type GrpcModule, type GrpcModuleOptions } from './modules/grpc.ts'
export type { DocumentStore } from './documents/documents.ts'
export { documentFolder, type DocumentFolderOptions } from './documents/folder.ts'
export type { PipelineEvent } from './events.ts'
export { metricsContentType } from './metrics/metrics.ts'
export type { ReplayOptions, ReplayReport } from './replay/options.ts'
export { replayFilter, type ReplayFilter } from './replay/filter.ts'
export type { ErasureKey, ErasureReport } from './erase.ts'
export { unseal, type DlqMessage, type Envelope } from './dead/envelope.ts'
export {
  aStream,
  readStream,
  writeStream,
  type Document,
  type DocumentRef,
  type PipeStream,
} from './stream.ts'
