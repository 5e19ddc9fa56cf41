// The identity of this server for extension servers: a separate authority, the client certificate, and the ConfigMap that publishes both.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type KeyPair, loadAuthority } from '../auth/certificates.ts';
import { isSame } from '../objects/equal.ts';
import type { ApiObject } from '../objects/object.ts';
import type { ApiCore } from './api.ts';

const clientName = 'front-proxy-client';

export interface FrontProxy {
  readonly caPem: string;
  readonly certificate: KeyPair;
}

export const loadFrontProxy = async (dataDir: string): Promise<FrontProxy> => {
  const folder = join(dataDir, 'front-proxy');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { caPem, issue } = await loadAuthority(folder);
  return { caPem, certificate: await issue(clientName, []) };
};

const key = { collection: 'configmaps', namespace: 'kube-system', name: 'extension-apiserver-authentication' };

/** As in kube-apiserver: the keys and their JSON lists are an interface. */
export const publishFrontProxy = (
  { store, uuid, clock }: Pick<ApiCore, 'store' | 'uuid' | 'clock'>,
  caPem: string,
): void => {
  const data = {
    'requestheader-allowed-names': JSON.stringify([clientName]),
    'requestheader-client-ca-file': caPem,
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  };
  const entry = store.get(key);
  const creationTimestamp = `${clock().toISOString().slice(0, 19)}Z`;
  const object: ApiObject = entry?.object() ?? {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: key.name, namespace: key.namespace, uid: uuid(), creationTimestamp },
  };
  if (isSame(object['data'], data)) return;
  object['data'] = data;
  if (entry === undefined) store.create(key, object);
  else store.replace(entry, entry.version, object);
};
