import { backends } from './backends.ts'
import { testConnection } from './connection.ts'

testConnection(backends.opensearch)
