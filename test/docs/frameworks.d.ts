// The parts of frameworks that docs/guides/web-frameworks.md uses. They are not installed: its
// blocks are compiled against these declarations.
declare module 'express' {
  import type { Server } from 'node:http'
  interface Request {
    body: unknown
  }
  interface Response {
    status(code: number): Response
    json(body: unknown): Response
  }
  type RequestHandler = (request: Request, response: Response, next: () => void) => unknown
  interface Application {
    use(handler: RequestHandler): Application
    post(path: string, handler: RequestHandler): Application
    listen(port: number): Server
  }
  function express(): Application
  namespace express {
    function json(): RequestHandler
  }
  export default express
}

declare module '@nestjs/common' {
  export interface OnApplicationShutdown {
    onApplicationShutdown(signal?: string): unknown
  }
  interface Provider {
    provide: unknown
    inject?: unknown[]
    useFactory: (...given: never[]) => unknown
  }
  export function Module(metadata: { providers?: Provider[]; exports?: unknown[] }): ClassDecorator
}
