// Objects in memory behind the fakes of Google and Azure: the requests of the XML API and of the Blob service, with the conditions that their documents
// name, and no others.
import { createHash } from 'node:crypto';
import { type CloudAnswer, type CloudRequest, xmlError } from '#test/support/cloud-http.ts';
import type { CloudOptions } from '#test/support/clouds.ts';
import { fileAnswer } from '#test/support/origin.ts';

interface Stored {
  readonly bytes: Buffer;
  readonly generation: number;
  readonly type: string;
}

interface Call {
  readonly request: CloudRequest;
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly found: Stored | undefined;
  readonly mayWrite: boolean;
}

/** The first whose condition holds answers; `undefined`: the next one does. */
type Step = (call: Call) => CloudAnswer | undefined;

export interface CloudStores {
  readonly respond: CloudOptions['store'];
  readonly objects: Map<string, Stored>;
}

/** Objects on one page of a list. */
const pageSize = 2;
const container = 'images';

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const xml = (body: string): CloudAnswer => ({ status: 200, headers: { 'content-type': 'application/xml' }, body });
const isRead = ({ method }: Call): boolean => method === 'GET' || method === 'HEAD';
const isWhole = ({ request: { headers, body } }: Call): boolean =>
  headers['content-md5'] === createHash('md5').update(body).digest('base64');
const etagOf = ({ generation }: Stored): string => `"${generation}"`;
const when =
  (condition: (call: Call) => boolean, answer: (call: Call) => CloudAnswer): Step =>
  (call) =>
    condition(call) ? answer(call) : undefined;

const createMemory = () => {
  const objects = new Map<string, Stored>();
  let generation = 0;
  return {
    objects,
    parts: new Map<string, Buffer>(),
    next: () => ++generation,
    write: (key: string, bytes: Buffer, type: string | undefined): Stored => {
      const made = { bytes, generation: ++generation, type: type ?? 'application/octet-stream' };
      objects.set(key, made);
      return made;
    },
    page: (prefix: string, from: string) => {
      const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > from).toSorted();
      const listed = keys
        .slice(0, pageSize)
        .map((key) => ({ name: escape(key), size: objects.get(key)?.bytes.length }));
      return { listed, next: keys.length > pageSize ? escape(keys[pageSize - 1] ?? '') : '' };
    },
  };
};
type Memory = ReturnType<typeof createMemory>;

const read = ({ request: { method, headers } }: Call, found: Stored, more: Record<string, string>): CloudAnswer => {
  const own = { 'content-type': found.type, ...more };
  const answer = fileAnswer({ method, path: '', headers, index: 0 }, found.bytes, {
    etag: etagOf(found),
    headers: own,
  });
  const status = answer.status ?? 200;
  return method === 'HEAD' ? { status, headers: answer.headers ?? {} } : { ...answer, status };
};

const googleSteps = ({ objects, parts, next, write, page }: Memory): readonly Step[] => {
  let uploads: { readonly key: string; readonly id: string }[] = [];
  const idOf = ({ query }: Call): string | undefined => query.get('uploadId') ?? undefined;
  const end = (id: string | undefined) => {
    uploads = uploads.filter((one) => one.id !== id);
  };
  const listUploads = () => {
    const listed = uploads.map(({ key, id }) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`);
    return xml(`<ListMultipartUploadsResult>${listed.join('')}</ListMultipartUploadsResult>`);
  };
  const list = ({ query }: Call) => {
    const { listed, next: token } = page(query.get('prefix') ?? '', query.get('continuation-token') ?? '');
    const contents = listed.map(({ name, size }) => `<Contents><Key>${name}</Key><Size>${size}</Size></Contents>`);
    const more = token === '' ? '' : `<NextContinuationToken>${token}</NextContinuationToken>`;
    return xml(`<ListBucketResult>${contents.join('')}${more}</ListBucketResult>`);
  };
  const begin = ({ key }: Call) => {
    const id = `upload-${next()}`;
    uploads = [...uploads, { key, id }];
    return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
  };
  const putPart = (call: Call) => {
    const number = call.query.get('partNumber') ?? '';
    parts.set(`${idOf(call)}-${number}`, call.request.body);
    return { status: 200, headers: { etag: `"${number}"` } };
  };
  const complete = (call: Call) => {
    const numbers = [...call.request.body.toString().matchAll(/<PartNumber>(\d+)</g)].map(([, number]) => number);
    const made = write(call.key, Buffer.concat(numbers.map((one) => parts.get(`${idOf(call)}-${one}`)!)), undefined);
    end(idOf(call));
    return xml(`<CompleteMultipartUploadResult><ETag>${etagOf(made)}</ETag></CompleteMultipartUploadResult>`);
  };
  const put = ({ key, request: { body, headers } }: Call) => {
    const made = write(key, body, headers['content-type']);
    return { status: 200, headers: { etag: etagOf(made), 'x-goog-generation': made.generation } };
  };
  const isOtherGeneration = ({ request: { headers }, found }: Call): boolean => {
    const expected = headers['x-goog-if-generation-match'];
    return expected !== undefined && Number(expected) !== (found?.generation ?? 0);
  };
  const isUnknown = (call: Call) => idOf(call) !== undefined && !uploads.some(({ id }) => id === idOf(call));
  return [
    when(
      (call) => !isRead(call) && !call.mayWrite,
      () => xmlError(403, 'AccessDenied', 'Access denied.'),
    ),
    when(({ key, query }) => key === '' && query.has('uploads'), listUploads),
    when(({ key }) => key === '', list),
    when(({ method, query }) => method === 'POST' && query.has('uploads'), begin),
    when(isUnknown, () => xmlError(404, 'NoSuchUpload')),
    when(
      (call) => call.method === 'PUT' && !isWhole(call),
      () => xmlError(400, 'BadDigest'),
    ),
    when((call) => call.method === 'PUT' && idOf(call) !== undefined, putPart),
    when(({ method }) => method === 'POST', complete),
    when(
      (call) => call.method === 'DELETE' && idOf(call) !== undefined,
      (call) => {
        end(idOf(call));
        return { status: 204 };
      },
    ),
    when(isOtherGeneration, () => xmlError(412, 'PreconditionFailed')),
    when(({ method }) => method === 'PUT', put),
    when(
      ({ found }) => found === undefined,
      () => xmlError(404, 'NoSuchKey'),
    ),
    when(
      ({ method, key }) => method === 'DELETE' && objects.delete(key),
      () => ({ status: 204 }),
    ),
    (call) => call.found && read(call, call.found, { 'x-goog-generation': String(call.found.generation) }),
  ];
};

const failed = (status: number, code: string): CloudAnswer => ({
  ...xmlError(status, code),
  headers: { 'x-ms-error-code': code },
});

const azureSteps = ({ objects, parts, write, page }: Memory): readonly Step[] => {
  const list = ({ query }: Call) => {
    const { listed, next } = page(query.get('prefix') ?? '', query.get('marker') ?? '');
    const blobs = listed.map(
      ({ name, size }) =>
        `<Blob><Name>${name}</Name><Properties><Content-Length>${size}</Content-Length></Properties></Blob>`,
    );
    return xml(
      `<EnumerationResults><Blobs>${blobs.join('')}</Blobs><NextMarker>${next}</NextMarker></EnumerationResults>`,
    );
  };
  const putBlock = ({ key, query, request: { body } }: Call) => {
    parts.set(`${key} ${query.get('blockid')}`, body);
    return { status: 201 };
  };
  const commit = ({ key, request: { body, headers } }: Call) => {
    const ids = [...body.toString().matchAll(/<Latest>([^<]+)</g)].map(([, id]) => `${key} ${id}`);
    const areEqual = new Set(ids.map(({ length }) => length)).size === 1;
    if (!areEqual || ids.some((id) => !parts.has(id))) return failed(400, 'InvalidBlockList');
    const made = write(key, Buffer.concat(ids.map((id) => parts.get(id)!)), String(headers['x-ms-blob-content-type']));
    return { status: 201, headers: { etag: etagOf(made) } };
  };
  const put = ({ key, request: { body, headers } }: Call) => {
    if (headers['x-ms-blob-type'] !== 'BlockBlob') return failed(400, 'MissingRequiredHeader');
    return { status: 201, headers: { etag: etagOf(write(key, body, headers['content-type'])) } };
  };
  const isOther = ({ request: { headers }, found }: Call): boolean =>
    headers['if-match'] !== undefined && headers['if-match'] !== (found && etagOf(found));
  const isTaken = ({ method, request: { headers }, found }: Call): boolean =>
    method === 'PUT' && headers['if-none-match'] === '*' && found !== undefined;
  const isComp = (comp: string) => (call: Call) => call.method === 'PUT' && call.query.get('comp') === comp;
  return [
    when(
      (call) => !isRead(call) && !call.mayWrite,
      () => failed(403, 'AuthorizationPermissionMismatch'),
    ),
    when(({ key, query }) => key === '' && query.get('restype') === 'container' && query.get('comp') === 'list', list),
    when(
      ({ key }) => key === '',
      () => failed(400, 'InvalidUri'),
    ),
    when(
      (call) => call.method === 'PUT' && !isWhole(call),
      () => failed(400, 'Md5Mismatch'),
    ),
    when(isComp('block'), putBlock),
    when(isOther, () => failed(412, 'ConditionNotMet')),
    when(isTaken, () => failed(409, 'BlobAlreadyExists')),
    when(isComp('blocklist'), commit),
    when(({ method }) => method === 'PUT', put),
    when(
      ({ found }) => found === undefined,
      () => failed(404, 'BlobNotFound'),
    ),
    when(
      ({ method, key }) => method === 'DELETE' && objects.delete(key),
      () => ({ status: 202 }),
    ),
    (call) => call.found && read(call, call.found, {}),
  ];
};

export const createCloudStores = (): CloudStores => {
  const memory = createMemory();
  const steps = { google: googleSteps(memory), azure: azureSteps(memory) };
  const none = { google: xmlError(404, 'NoSuchBucket'), azure: failed(404, 'ContainerNotFound') };
  return {
    objects: memory.objects,
    respond: (cloud, request, mayWrite) => {
      const [first, ...rest] = request.url.pathname.slice(1).split('/');
      if (first !== container) return none[cloud];
      const key = rest.map(decodeURIComponent).join('/');
      const { method, url } = request;
      const call = { request, method, key, query: url.searchParams, found: memory.objects.get(key), mayWrite };
      for (const step of steps[cloud]) {
        const answer = step(call);
        if (answer !== undefined) return answer;
      }
      return { status: 405 };
    },
  };
};
