// The HTTP server part of an admission function: it decodes an AdmissionReview and answers in time. `functions/{validate,mutate}/app.ts` supply
// the review.
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import {
  type AdmissionRequest,
  type AdmissionResponse,
  AdmissionReview,
  type AdmissionStatus,
} from '#shared/api/admission.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { withContext } from './trace.ts';
import type { DirectAnswer, DirectApp } from '#shared/runtime/direct.ts';
import { type Fault, InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';
import { diffJson } from '#shared/runtime/json-patch.ts';
import type { Logger } from '#shared/runtime/log.ts';

/**
 * - `allowed`: with the object to store, if the function changes it, and warnings for the user.
 * - `refused`: all faults at once. `Invalid`: the object is wrong; `Conflict`: it collides with another object; `Forbidden`: its user lacks a
 *   permission.
 */
export type AdmissionAnswer =
  | { readonly kind: 'allowed'; readonly object?: KubeObject; readonly warnings?: readonly string[] }
  | {
      readonly kind: 'refused';
      readonly reason: RefusalReason;
      readonly message?: string;
      readonly faults: readonly Fault[];
    };
export type RefusalReason = 'Invalid' | 'Conflict' | 'Forbidden';

export const allowed: AdmissionAnswer = { kind: 'allowed' };
export const refused = (reason: RefusalReason, faults: readonly Fault[], message?: string): AdmissionAnswer => ({
  kind: 'refused',
  reason,
  faults,
  ...(message === undefined ? {} : { message }),
});

export interface ReviewContext {
  /** Fires when the timeout of the API server is over. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface AdmissionFunctionOptions {
  /** Served at `/<name>`. */
  readonly name: string;
  readonly log: Logger;
  /**
   * Must have no side effects: the same review may be sent again, or be a dry run. An exception is answered with HTTP 500, and the
   * `failurePolicy` of the webhook applies.
   */
  review(request: AdmissionRequest, context: ReviewContext): Promise<AdmissionAnswer>;
}

/** Two copies of an object of 1.5 MiB, plus encoding overhead. */
const maxReviewBytes = 6 * 1024 * 1024;
const defaultBudgetMs = 10_000;
/** Subtracted from the timeout, so that our message arrives before the API server gives up. */
const replyMs = 250;

const tooLarge = (): DirectAnswer => ({
  status: 413,
  body: failure(413, 'RequestEntityTooLarge', `a review is at most ${maxReviewBytes} bytes`),
});

/** Both paths give the same answer; a server uses the direct one. */
export const admissionFunction = (options: AdmissionFunctionOptions): Hono & DirectApp => {
  const app = new Hono();
  const path = `/${options.name}`;
  const limit = bodyLimit({ maxSize: maxReviewBytes, onError: (c) => c.json(tooLarge().body, 413) });
  app.post(path, limit, async (c) => {
    const { status, body } = await answerText(options, await c.req.text(), c.req.query('timeout'));
    return c.json(body, status as 200);
  });
  return Object.assign(app, {
    direct: (method: string, url: string) => {
      const [asked, query] = url.split('?');
      if (method !== 'POST' || asked !== path) return undefined;
      const timeout = new URLSearchParams(query).get('timeout') ?? undefined;
      return {
        maxBytes: maxReviewBytes,
        tooLarge,
        answer: (text: string) => answerText(options, text, timeout),
      };
    },
  });
};

const answerText = async (
  options: AdmissionFunctionOptions,
  text: string,
  timeout: string | undefined,
): Promise<DirectAnswer> => {
  const received = parseReview(text);
  if (received instanceof InvalidInput) {
    options.log.warn('review refused', { function: options.name, error: received });
    return { status: 400, body: failure(400, 'BadRequest', received.message) };
  }
  return answer(options, received, parseBudget(timeout));
};

const parseReview = (text: string): AdmissionRequest | InvalidInput => {
  try {
    const { success, data, error } = AdmissionReview.safeParse(JSON.parse(text));
    if (success) return data.request;
    const faults = error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
    return new InvalidInput(`not an AdmissionReview of admission.k8s.io/v1: ${faults.map(toLine).join('; ')}`, faults);
  } catch (error) {
    return new InvalidInput(`not JSON: ${messageOf(error)}`, [], { cause: error });
  }
};

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** Milliseconds of a Go duration such as `10s` or `1m30s`; the default if it is missing or invalid. */
export const parseBudget = (timeout: string | undefined): number => {
  const parts = [...(timeout ?? '').matchAll(/(\d+(?:\.\d+)?)(ms|s|m)/g)];
  if (parts.map(([part]) => part).join('') !== timeout || parts.length === 0) return defaultBudgetMs;
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (units[unit ?? ''] ?? 0), 0);
};

type Answered =
  | { readonly status: 200; readonly body: object; readonly outcome: string }
  | { readonly status: 500; readonly body: object; readonly outcome: string; readonly error: unknown };

const answer = async (
  options: AdmissionFunctionOptions,
  request: AdmissionRequest,
  budgetMs: number,
): Promise<Answered> => {
  const started = performance.now();
  const name = [request.namespace, request.name].filter(Boolean).join('/');
  return withContext(
    { function: options.name, eventId: request.uid, object: `${request.kind.kind} ${name}` },
    async () => {
      const answered = await decide(options, request, budgetMs);
      const { status, outcome } = answered;
      const error = answered.status === 500 ? { error: answered.error } : {};
      const fields = { outcome, operation: request.operation, status, ms: Math.round(performance.now() - started) };
      options.log[status === 500 ? 'error' : 'info']('review answered', { ...fields, ...error });
      return answered;
    },
  );
};

const decide = async (
  options: AdmissionFunctionOptions,
  request: AdmissionRequest,
  budgetMs: number,
): Promise<Answered> => {
  const clock = new AbortController();
  const ms = Math.max(budgetMs - replyMs, budgetMs / 2);
  const timer = setTimeout(() => clock.abort(new Unavailable(`no answer within ${Math.round(ms)} ms`)), ms);
  try {
    const review = options.review(request, { signal: clock.signal, log: options.log });
    const result = await Promise.race([review, expiry(clock.signal)]);
    const response = toResponse(request, result);
    const body = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
    return { status: 200, body, outcome: result.kind };
  } catch (error) {
    const body = failure(500, 'InternalError', `${options.name} could not decide: ${messageOf(error)}`);
    return { status: 500, body, outcome: 'error', error };
  } finally {
    clearTimeout(timer);
  }
};

const expiry = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });

const toResponse = (request: AdmissionRequest, result: AdmissionAnswer): AdmissionResponse => {
  if (result.kind === 'refused') return { uid: request.uid, allowed: false, status: toStatus(request, result) };
  const patch = result.object === undefined ? [] : diffJson(request.object, result.object);
  return {
    uid: request.uid,
    allowed: true,
    ...(result.warnings === undefined || result.warnings.length === 0 ? {} : { warnings: result.warnings }),
    ...(patch.length === 0
      ? {}
      : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
  };
};

const codes: Readonly<Record<RefusalReason, number>> = { Invalid: 422, Conflict: 409, Forbidden: 403 };
const causes: Readonly<Record<RefusalReason, string>> = {
  Invalid: 'FieldValueInvalid',
  Conflict: 'FieldValueDuplicate',
  Forbidden: 'FieldValueForbidden',
};

const toLine = ({ field, message }: Fault): string => (field === '' ? message : `${field}: ${message}`);

const toStatus = (
  { name, kind }: AdmissionRequest,
  { reason, message, faults }: Extract<AdmissionAnswer, { kind: 'refused' }>,
): AdmissionStatus => ({
  ...failure(codes[reason], reason, message ?? faults.map(toLine).join('; ')),
  details: {
    ...(name === undefined || name === '' ? {} : { name }),
    group: kind.group,
    kind: kind.kind,
    causes: faults.map((fault) => ({ reason: causes[reason], ...fault })),
  },
});

const failure = (code: number, reason: string, message: string): AdmissionStatus => ({
  status: 'Failure',
  code,
  reason,
  message,
});
