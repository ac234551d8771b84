// The emulator in a thread of its own, so that its work is not taken for that of its clients.
import { parentPort } from 'node:worker_threads'
import { startFauxqs } from 'fauxqs'

const { port } = await startFauxqs({ port: 0, logger: false })
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort!.postMessage(port)
