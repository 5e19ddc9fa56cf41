// One HTTPS server for the admission webhooks of all cases; each case has a separate path. Called by run.ts.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import type { Webhook, WebhookCall, WebhookHandler } from '#local-cluster/conformance/suite/case.ts';
import { type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';

export interface WebhookServer {
  readonly open: (caseId: string, handler: WebhookHandler) => Webhook;
  readonly closeCase: (caseId: string) => void;
  readonly close: () => Promise<void>;
}

interface Registration {
  readonly handler: WebhookHandler;
  readonly calls: WebhookCall[];
}

export const startWebhookServer = async (): Promise<WebhookServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-webhooks-'));
  const files = await ensureControlPlaneFiles(folder);
  const [ca, cert, key] = await Promise.all([files.ca, files.certificate, files.key].map((file) => readFile(file)));
  const registrations = new Map<string, Registration>();
  const server = createServer({ cert, key }, (request, response) => {
    void answer(registrations, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const caBundle = ca!.toString('base64');
  return {
    open: (caseId, handler) => {
      const calls: WebhookCall[] = [];
      registrations.set(caseId, { handler, calls });
      return { clientConfig: (path = '/') => ({ url: `${origin}/${caseId}${path}`, caBundle }), calls };
    },
    closeCase: (caseId) => void registrations.delete(caseId),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true });
    },
  };
};

const answer = async (
  registrations: ReadonlyMap<string, Registration>,
  request: IncomingMessage,
  response: ServerResponse & { req: IncomingMessage },
): Promise<void> => {
  const [path = '/'] = (request.url ?? '/').split('?');
  const [, caseId = '', ...rest] = path.split('/');
  const review = JSON.parse(await text(request)) as JsonValue;
  const registration = registrations.get(caseId);
  if (registration === undefined) return void response.writeHead(410).end();
  const call = { path: `/${rest.join('/')}`, review };
  registration.calls.push(call);
  const reply = await registration.handler(call);
  const uid = textAt(review, 'request.uid');
  const envelope = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, ...reply.response } };
  response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' });
  response.end(reply.raw ?? JSON.stringify(envelope));
};
