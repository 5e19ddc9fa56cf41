import { describe, expect, it } from 'vitest';
import type { AdmissionResponse } from '#shared/api/admission.ts';
import type { KubeObject } from '#shared/api/object.ts';
import {
  type AdmissionFunctionOptions,
  admissionFunction,
  allowed,
  parseBudget,
  refused,
} from '#shared/runtime/admission-function.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { slowness } from '#test/support/slowness.ts';

const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace: 'n' }, spec: { size: 1 } };

const aReview = (request: object = {}): object => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u1',
    kind: { group: 'example.dev', version: 'v1', kind: 'Thing' },
    resource: { group: 'example.dev', version: 'v1', resource: 'things' },
    name: 'a',
    namespace: 'n',
    operation: 'CREATE',
    userInfo: { username: 'jane' },
    object,
    oldObject: null,
    ...request,
  },
});

type Review = AdmissionFunctionOptions['review'];

const post = async (review: Review, body: string, query = ''): Promise<Response> =>
  admissionFunction({ name: 'check', log: silentLogger, review }).request(`/check${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });

const answerOf = async (review: Review, request: object = {}): Promise<AdmissionResponse> => {
  const response = await post(review, JSON.stringify(aReview(request)));
  expect(response.status).toBe(200);
  const body = (await response.json()) as { apiVersion: string; kind: string; response: AdmissionResponse };
  expect(body).toMatchObject({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: 'u1' } });
  return body.response;
};

const patchOf = (response: AdmissionResponse): unknown =>
  JSON.parse(Buffer.from(response.patch ?? '', 'base64').toString());

describe('200', () => {
  it('contains only `allowed` when there is nothing else to report', async () => {
    expect(await answerOf(async () => allowed)).toEqual({ uid: 'u1', allowed: true });
  });

  it('contains the warnings', async () => {
    const response = await answerOf(async () => ({ kind: 'allowed', warnings: ['old'] }));
    expect(response.warnings).toEqual(['old']);
  });

  it('contains the changes of the review as a JSON patch', async () => {
    const response = await answerOf(async (request) => ({
      kind: 'allowed',
      object: { ...request.object, spec: { size: 1, class: 'x' } } as unknown as KubeObject,
    }));
    expect(response.patchType).toBe('JSONPatch');
    expect(patchOf(response)).toEqual([{ op: 'add', path: '/spec/class', value: 'x' }]);
  });

  it('contains no patch when the review changed nothing', async () => {
    const response = await answerOf(async (request) => ({ kind: 'allowed', object: { ...request.object! } }));
    expect(response).toEqual({ uid: 'u1', allowed: true });
  });

  it.each([
    ['Invalid', 422, 'FieldValueInvalid'],
    ['Conflict', 409, 'FieldValueDuplicate'],
    ['Forbidden', 403, 'FieldValueForbidden'],
  ] as const)('refuses %s as %i with every fault as a cause', async (reason, code, cause) => {
    const faults = [
      { field: 'spec.a', message: 'is wrong' },
      { field: 'spec.b', message: 'is missing' },
    ];
    expect(await answerOf(async () => refused(reason, faults))).toEqual({
      uid: 'u1',
      allowed: false,
      status: {
        status: 'Failure',
        code,
        reason,
        message: 'spec.a: is wrong; spec.b: is missing',
        details: {
          name: 'a',
          group: 'example.dev',
          kind: 'Thing',
          causes: faults.map((fault) => ({ reason: cause, ...fault })),
        },
      },
    });
  });

  it('accepts null for an absent object, and passes on a dry run', async () => {
    let observed: unknown;
    await answerOf(
      async (request) => {
        observed = [request.object, request.oldObject?.metadata.name, request.dryRun];
        return allowed;
      },
      { operation: 'DELETE', object: null, oldObject: object, dryRun: true },
    );
    expect(observed).toEqual([undefined, 'a', true]);
  });
});

describe('400', () => {
  const reviewed: Review = async () => {
    throw new Error('must not be asked');
  };
  it.each([
    ['no JSON', '{'],
    ['no body', ''],
    ['another version', JSON.stringify({ ...aReview(), apiVersion: 'admission.k8s.io/v1beta1' })],
    ['no request', JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' })],
    ['no uid', JSON.stringify(aReview({ uid: '' }))],
    ['an unknown operation', JSON.stringify(aReview({ operation: 'PATCH' }))],
    ['an object that is none', JSON.stringify(aReview({ object: 'x' }))],
  ])('answers %s', async (_name, body) => {
    const response = await post(reviewed, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ status: 'Failure', code: 400, reason: 'BadRequest' });
  });
});

describe('413', () => {
  it('for a body above 6 MiB, but not for one just below', async () => {
    const filled = (bytes: number): string =>
      JSON.stringify(aReview({ object: { ...object, spec: { text: 'x'.repeat(bytes) } } }));
    const large = await post(async () => allowed, filled(6 * 1024 * 1024));
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ code: 413, reason: 'RequestEntityTooLarge' });
    expect((await post(async () => allowed, filled(6 * 1024 * 1024 - 4096))).status).toBe(200);
  });
});

describe('500', () => {
  it('leaves the decision to the failure policy when a read fails', async () => {
    const response = await post(async () => {
      throw new Unavailable('the API is down');
    }, JSON.stringify(aReview()));
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ message: 'check could not decide: the API is down' });
  });

  it('is returned before the timeout of the API server', async () => {
    const started = performance.now();
    let stopped = false;
    const hanging: Review = (_request, { signal }) =>
      new Promise(() => signal.addEventListener('abort', () => (stopped = true)));
    const response = await post(hanging, JSON.stringify(aReview()), '?timeout=400ms');
    expect(response.status).toBe(500);
    expect((performance.now() - started) / slowness()).toBeLessThan(400);
    expect(stopped).toBe(true);
  });
});

describe('parseBudget', () => {
  it.each([
    ['10s', 10_000],
    ['1m30s', 90_000],
    ['250ms', 250],
    ['1.5s', 1500],
    [undefined, 10_000],
    ['soon', 10_000],
    ['5', 10_000],
  ])('parses %s', (text, ms) => {
    expect(parseBudget(text)).toBe(ms);
  });
});
