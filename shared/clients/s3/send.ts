// Sends commands of the SDK: the client of the right region, loaded on first use, with our errors.
import type { HttpClient } from '#shared/clients/http/client.ts';
import type { S3Credentials } from '#shared/clients/s3/credentials.ts';
import type * as S3Sdk from '@aws-sdk/client-s3';
import { type S3Subject, regionHint, toS3Failure } from '#shared/clients/s3/errors.ts';
import { createRequestHandler } from '#shared/clients/s3/handler.ts';

export interface S3ObjectKey {
  readonly bucket: string;
  readonly key: string;
}

export interface S3Options {
  /** Used for connections; its owner closes it. */
  readonly http: HttpClient;
  /** URL of the store. Default: AWS in this region. */
  readonly endpoint?: string | undefined;
  /** Region for the first signature; if the store reports another one for the bucket, that is used. */
  readonly region: string;
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`. */
  readonly pathStyle: boolean;
  /** Default: requests are not signed. */
  readonly credentials?: S3Credentials | undefined;
}

/** Sends a command of the SDK; a wrong region is corrected once. */
export type SendCommand = <T>(subject: S3Subject, work: (sdk: Sdk, client: SdkClient) => Promise<T>) => Promise<T>;
type Sdk = typeof S3Sdk;
type SdkClient = S3Sdk.S3Client;

/** Without credentials requests are not signed, but the SDK requires some value. */
const identityOf = ({ credentials }: S3Options): Pick<S3Sdk.S3ClientConfig, 'credentials' | 'signer'> => {
  if (credentials === undefined) {
    return {
      credentials: { accessKeyId: '', secretAccessKey: '' },
      signer: { sign: (request) => Promise.resolve(request) },
    };
  }
  const { sessionToken, ...pair } = credentials;
  return { credentials: sessionToken === undefined ? pair : { ...pair, sessionToken } };
};

const connect = (sdk: Sdk, options: S3Options, region: string): SdkClient =>
  new sdk.S3Client({
    region,
    forcePathStyle: options.pathStyle,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    requestHandler: createRequestHandler(options.http),
    // Retries are up to the caller, who has a deadline.
    maxAttempts: 1,
    // Default checksums are rejected by other stores. Bodies are signed and verified by that.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...identityOf(options),
  });

export const createSend = (options: S3Options): SendCommand => {
  let region = options.region;
  const clients = new Map<string, SdkClient>();
  const clientFor = async () => {
    const sdk = await import('@aws-sdk/client-s3');
    const client = clients.get(region) ?? connect(sdk, options, region);
    clients.set(region, client);
    return { sdk, client };
  };
  return async (subject, work) => {
    try {
      const asked = region;
      const { sdk, client } = await clientFor();
      return await work(sdk, client).catch(async (error: unknown) => {
        const hint = regionHint(error);
        if (hint === undefined || hint === asked) throw error;
        region = hint;
        const corrected = await clientFor();
        return work(corrected.sdk, corrected.client);
      });
    } catch (error) {
      throw toS3Failure(error, subject);
    }
  };
};
