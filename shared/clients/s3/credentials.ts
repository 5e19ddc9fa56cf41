// Credentials of an object store, from the common keys of a Secret. Pure.
import { InvalidInput } from '#shared/runtime/errors.ts';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** For temporary credentials. */
  readonly sessionToken?: string | undefined;
}

/** The first of each is the key of CDI, the others are those of the AWS tools. */
const names = {
  accessKeyId: ['accessKeyId', 'AWS_ACCESS_KEY_ID', 'aws_access_key_id'],
  secretAccessKey: ['secretKey', 'AWS_SECRET_ACCESS_KEY', 'aws_secret_access_key'],
  sessionToken: ['sessionToken', 'AWS_SESSION_TOKEN', 'aws_session_token'],
} as const;

/** Throws InvalidInput, without any content of the Secret, if a key is missing. */
export const parseS3Credentials = (secret: Readonly<Record<string, string>>): S3Credentials => {
  const valueOf = (field: keyof typeof names): string | undefined =>
    names[field].map((name) => secret[name]?.trim()).find((value) => value !== undefined && value !== '');
  const [accessKeyId, secretAccessKey, sessionToken] = [
    valueOf('accessKeyId'),
    valueOf('secretAccessKey'),
    valueOf('sessionToken'),
  ];
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new InvalidInput('the Secret of the object store needs the keys accessKeyId and secretKey');
  }
  return { accessKeyId, secretAccessKey, sessionToken };
};
