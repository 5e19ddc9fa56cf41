// An error answer: a Kubernetes Status, so that clients parse it like any other.
import { AppError, isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';
import { statusBody } from '#shared/runtime/errors.ts';

export interface ProblemOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Plain text, if the client of a protocol expects that. */
  readonly as?: 'status' | 'text';
}

/** Thrown by handlers; `message` says what to do. */
export class Problem extends Error {
  readonly status: number;
  readonly reason: string;
  readonly options: ProblemOptions;

  constructor(status: number, reason: string, message: string, options: ProblemOptions = {}) {
    super(message);
    this.name = 'Problem';
    this.status = status;
    this.reason = reason;
    this.options = options;
  }
}

const bodyOf = ({ status, reason, message, options: { as = 'status' } }: Problem): string =>
  as === 'text' ? message : statusBody(status, reason, message);

const typeOf = (as: ProblemOptions['as']): Record<string, string> => ({
  'content-type': as === 'text' ? 'text/plain; charset=utf-8' : 'application/json',
});

export const toProblem = (error: unknown): Problem => {
  if (error instanceof Problem) return error;
  const message = redact(messageOf(error));
  if (isNotFound(error)) return new Problem(404, 'NotFound', message);
  if (isConflict(error)) return new Problem(409, 'Conflict', message);
  if (error instanceof AppError && error.retryable) {
    return new Problem(503, 'ServiceUnavailable', `${message}; try again`, { headers: { 'retry-after': '5' } });
  }
  return new Problem(500, 'InternalError', 'internal error; see the log of the transfer function');
};

/** With its length: if the answer comes before the end of the request body, the client must recognize its end at once. */
export const respondProblem = (problem: Problem): Response => {
  const body = bodyOf(problem);
  return new Response(body, {
    status: problem.status,
    headers: {
      ...typeOf(problem.options.as),
      'content-length': String(Buffer.byteLength(body)),
      'cache-control': 'no-store',
      ...problem.options.headers,
    },
  });
};
