// Reads the mounted Secrets and ConfigMaps of a source. Called by open.ts; makes no connection.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloudUse } from '#shared/clients/cloud/azure.ts';
import type { CloudAccess, CloudTools } from '#shared/clients/cloud/authorized.ts';
import { type OpenedObjects, openObjectStore } from '#shared/clients/cloud/store.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient, type HttpClient } from '#shared/clients/http/client.ts';
import { isCertificate } from '#shared/runtime/certificate.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { HttpSource, Mounted, StoredObject, TransferSpec } from '#shared/transfer/spec.ts';

type Data = Readonly<Record<string, string>>;

/** The keys of a mounted object. Names that start with two dots are internal to the mount. */
const readKeys = async (dir: string): Promise<Data> => {
  const data: Record<string, string> = {};
  for (const name of await readdir(dir)) {
    if (!name.startsWith('..')) data[name] = await readFile(join(dir, name), 'utf8');
  }
  return data;
};

/**
 * The object is mounted as optional, and is an empty directory if it is missing: it may still be created, and no request is made without it.
 * `hint`: its required content.
 */
const readMounted = async (dir: string, what: string, hint: string): Promise<Data> => {
  const data = await readKeys(dir).catch((error: unknown) => {
    const message = `cannot read ${what}: ${messageOf(error)}`;
    throw new TransferError('SourceForbidden', message, { cause: error, retryable: true });
  });
  if (Object.keys(data).length > 0) return data;
  const message = `${what} is missing in this namespace: create it with ${hint}`;
  throw new TransferError('SourceForbidden', message, { retryable: true });
};

/** The Secret of a source, if it has one. `of`: `the registry`. */
export const readSecret = async (
  { secretDir, secretName }: { readonly secretDir?: string | undefined; readonly secretName?: string | undefined },
  { of, hint }: { readonly of: string; readonly hint: string },
): Promise<Data | undefined> => {
  const named = secretName === undefined ? 'the Secret' : `the Secret ${secretName}`;
  return secretDir === undefined ? undefined : readMounted(secretDir, `${named} of ${of}`, hint);
};

const readPodToken = async (file: string): Promise<string> => {
  const token = await readFile(file, 'utf8').catch((error: unknown) => {
    const message = `cannot read the token of the pod for its workload identity: ${messageOf(error)}`;
    throw new TransferError('SourceForbidden', message, { cause: error, retryable: true });
  });
  return token.trim();
};

/** The kubelet renews the token: it is read again for each exchange. */
export const readWorkload = ({
  workload,
}: Pick<HttpSource, 'workload'>): Pick<CloudAccess, 'identity' | 'readPodToken'> =>
  workload === undefined ? {} : { identity: workload.identity, readPodToken: () => readPodToken(workload.tokenFile) };

/** PEM certificates to trust besides the default ones; `undefined` if the source has none. */
export const readBundle = async (ca: Mounted | undefined): Promise<string | undefined> => {
  if (ca === undefined) return undefined;
  const bundles = Object.values(await readMounted(ca.dir, `the ConfigMap ${ca.name}`, 'certificates in PEM form'));
  const bundle = bundles.join('\n');
  if (!isCertificate(bundle)) {
    throw new TransferError('InvalidSpec', `the ConfigMap ${ca.name} contains no certificate in PEM form`);
  }
  return bundle;
};

const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*([^\r\n\0]*)$/;

/** Never repeats the line: it may contain a secret. */
const parseHeader = (line: string, where: string): readonly [string, string] => {
  const found = header.exec(line.trim());
  if (found === null)
    throw new TransferError('InvalidSpec', `${where} is not an HTTP header of the form "Name: value"`);
  return [(found[1] ?? '').toLowerCase(), found[2] ?? ''];
};

const pairs = [
  ['accessKeyId', 'secretKey'],
  ['username', 'password'],
] as const;

const basicAuth = (secret: Data, name: string): string => {
  for (const [user, key] of pairs) {
    const [username, password] = [secret[user]?.trim(), secret[key]?.trim()];
    if (username !== undefined && password !== undefined)
      return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  throw new TransferError(
    'InvalidSpec',
    `the Secret ${name} needs the keys accessKeyId and secretKey, or username and password`,
  );
};

/** Headers for the origin of a web source only, names in lower case. Explicit headers take precedence over basic authorization. */
export const readHeaders = async (source: HttpSource): Promise<Record<string, string>> => {
  const { secretHeaders = [], headerSecrets = [], secretName = '' } = source;
  const secret = await readSecret(source, { of: 'the source', hint: 'the keys accessKeyId and secretKey' });
  const written = secretHeaders.map((line, index) => parseHeader(line, `extra header ${index + 1}`));
  const kept: (readonly [string, string])[] = [];
  for (const mounted of headerSecrets) {
    const data = await readMounted(
      mounted.dir,
      `the Secret ${mounted.name}`,
      'a header in each key, such as "X-Token: value"',
    );
    for (const [key, line] of Object.entries(data))
      kept.push(parseHeader(line, `key ${key} of the Secret ${mounted.name}`));
  }
  const basic = secret === undefined ? [] : [['authorization', basicAuth(secret, secretName)] as const];
  return Object.fromEntries([...basic, ...written, ...kept]);
};

// The HTTP client and the object store client of a transfer: allowed addresses, timeouts, certificates and credentials.

export const parseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new TransferError('InvalidSpec', `"${redactUrl(text)}" is not an http or https URL`);
};

export type ClientSpec = Pick<TransferSpec, 'allowedAddresses' | 'clouds' | 'limits' | 'proxies' | 'reach'>;

export const openClient = (spec: ClientSpec, ca: string | undefined): HttpClient =>
  createHttpClient({
    isRefused: createAddressPolicy(spec.allowedAddresses),
    reach: spec.reach,
    idleMs: spec.limits.idleSeconds * 1000,
    floor:
      spec.limits.floor === undefined
        ? undefined
        : { bytes: spec.limits.floor.bytes, windowMs: spec.limits.floor.seconds * 1000 },
    ca,
    proxies: spec.proxies,
  });

/**
 * The store of a spec, with its mounted credentials: for sources and for exports. Makes no connection. Throws TransferError, or InvalidInput for
 * missing keys of the Secret.
 */
export const openStore = async (place: StoredObject, use: CloudUse, spec: ClientSpec): Promise<OpenedObjects> => {
  const { endpoint, region, pathStyle, secretName } = place;
  if (endpoint !== undefined) parseUrl(endpoint);
  const secret = await readSecret(place, { of: 'the object store', hint: 'the keys accessKeyId and secretKey' });
  const http = openClient(spec, (await readBundle(place.ca)) ?? secret?.['ca.crt'] ?? place.caBundle);
  const access = { secret, secretName, use, ...readWorkload(place) };
  return openObjectStore({ http, endpoint, region, pathStyle }, access, openCloudTools(spec));
};

/** Token services are the operator's: neither limits of the namespace nor certificates of the source are about them. */
export const openCloudTools = (spec: ClientSpec): CloudTools => ({
  asks: openClient({ ...spec, reach: undefined }, undefined),
  now: Date.now,
  clouds: spec.clouds,
});
