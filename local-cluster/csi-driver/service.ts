// A gRPC service as functions of requests. Called by main.ts.
import { join } from 'node:path';
import {
  type GrpcObject,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
  loadPackageDefinition,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { messageOf } from '#shared/runtime/errors.ts';

/** An answer that callers act on: Kubernetes retries some of them and gives up at others. */
export class CallError extends Error {
  readonly code: status;
  constructor(code: keyof typeof status, message: string) {
    super(message);
    this.code = status[code];
  }
}

/** Fields as in the `.proto` file; enums as their names, numbers as numbers. */
// eslint-disable-next-line typescript/no-explicit-any
export type Methods = Readonly<Record<string, (request: any) => Promise<object>>>;

interface Call {
  readonly request: unknown;
}
type Answer = (error: { readonly code: status; readonly details: string } | null, value?: object) => void;

type Report = (line: string) => void;

const handle =
  (name: string, method: (request: unknown) => Promise<object>, report: Report) =>
  ({ request }: Call, answer: Answer): void => {
    method(request).then(
      (value) => answer(null, value),
      (error: unknown) => {
        report(`${name}: ${messageOf(error)}`);
        answer({ code: error instanceof CallError ? error.code : status.INTERNAL, details: messageOf(error) });
      },
    );
  };

export interface ServiceOf {
  /** In the folder of protocols. */
  readonly protocol: string;
  /** Package and name, such as `csi.v1.Node`. */
  readonly name: string;
  readonly methods: Methods;
}

/** Methods of the protocol that are missing answer UNIMPLEMENTED. */
export const createServer = (protocols: string, services: readonly ServiceOf[], report: Report): Server => {
  const server = new Server();
  for (const { protocol, name, methods } of services) {
    const definition = loadSync(join(protocols, protocol), {
      keepCase: true,
      longs: Number,
      enums: String,
      defaults: true,
      oneofs: true,
    });
    const found = name
      .split('.')
      .reduce<unknown>((at, part) => (at as GrpcObject)[part], loadPackageDefinition(definition));
    const handlers = Object.entries(methods).map(([method, run]) => [method, handle(method, run, report)]);
    server.addService((found as ServiceClientConstructor).service, Object.fromEntries(handlers) as never);
  }
  return server;
};

export const listen = (server: Server, socket: string): Promise<void> =>
  new Promise((resolve, reject) =>
    server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    ),
  );
