import { backends } from './backends.ts'
import { testNetwork } from './network.ts'

testNetwork(backends.postgres)
