// Errors of the object store, with S3's own codes, so that clients recognize them.
import { xml } from '#local-cluster/object-store/xml.ts';

/** S3 error codes with their HTTP status. */
const statuses = {
  AccessDenied: 403,
  AuthorizationHeaderMalformed: 400,
  BadDigest: 400,
  BucketAlreadyOwnedByYou: 409,
  BucketNotEmpty: 409,
  EntityTooSmall: 400,
  IncompleteBody: 400,
  InsufficientStorage: 507,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidArgument: 400,
  InvalidBucketName: 400,
  InvalidDigest: 400,
  InvalidPart: 400,
  InvalidPartOrder: 400,
  InvalidRange: 416,
  InvalidRequest: 400,
  InvalidToken: 400,
  KeyTooLongError: 400,
  MalformedXML: 400,
  MethodNotAllowed: 405,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  NotImplemented: 501,
  PreconditionFailed: 412,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  XAmzContentSHA256Mismatch: 400,
} as const;
export type StoreFaultCode = keyof typeof statuses;

export class StoreFault extends Error {
  readonly code: StoreFaultCode;
  /** More elements of the error document. */
  readonly details: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: StoreFaultCode,
    message: string,
    more: { readonly details?: Record<string, string>; readonly headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.name = 'StoreFault';
    this.code = code;
    this.details = more.details ?? {};
    this.headers = more.headers ?? {};
  }

  get status(): number {
    return statuses[this.code];
  }
}

/** The error document. Everything that is not a fault of the request is an InternalError without a message. */
export const toErrorDocument = (fault: StoreFault, resource: string): string =>
  xml('Error', { Code: fault.code, Message: fault.message, Resource: resource, ...fault.details });
