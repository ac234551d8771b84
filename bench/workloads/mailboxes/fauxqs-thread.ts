// The emulator in its own thread, so that its work does not count as that of its clients.
import { parentPort } from 'node:worker_threads'
import { startFauxqs } from 'fauxqs'

const { port } = await startFauxqs({ port: 0, logger: false })
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort!.postMessage(port)
