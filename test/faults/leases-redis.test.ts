import { backends } from './backends.ts'
import { testLeases } from './leases.ts'

testLeases(backends.redis)
