// An OpenTelemetry collector that records received spans.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly links?: readonly { readonly traceId: string }[];
  readonly attributes: Readonly<Record<string, string | boolean | number>>;
}

interface Request {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<CollectedSpan, 'attributes' | 'service'> & {
        readonly attributes: readonly Attribute[];
      })[];
    }[];
  }[];
}
interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, string | boolean | number>>;
}

const plain = (attributes: readonly Attribute[]): CollectedSpan['attributes'] =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? '']));

export interface Collector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  readonly close: () => Promise<void>;
}

export const startCollector = async (): Promise<Collector> => {
  const spans: CollectedSpan[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Request;
      for (const { resource, scopeSpans } of resourceSpans) {
        const service = String(plain(resource.attributes)['service.name']);
        const found = scopeSpans.flatMap((scope) => scope.spans);
        spans.push(...found.map((span) => ({ ...span, service, attributes: plain(span.attributes) })));
      }
      response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
};
