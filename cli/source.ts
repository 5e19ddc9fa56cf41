// What a person writes as the place of an image, and the object that imports it.
import { InvalidInput } from '#shared/runtime/errors.ts';

export type ImageSource =
  | { readonly type: 'http'; readonly url: string }
  | { readonly type: 'object'; readonly bucket: string; readonly key: string };

/** `s3://bucket/key`; `undefined` where it is none. */
export const parseObjectPlace = (text: string): { readonly bucket: string; readonly key: string } | undefined => {
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/i.exec(text) ?? [];
  return bucket === undefined || key === undefined ? undefined : { bucket, key };
};

/** `http(s)://…`, or `s3://bucket/key` in the object store of the installation. Throws InvalidInput. */
export const parseSource = (text: string): ImageSource => {
  if (/^https?:\/\/./i.test(text)) return { type: 'http', url: text };
  const object = parseObjectPlace(text);
  if (object !== undefined) return { type: 'object', ...object };
  if (/^(docker|oci):\/\//i.test(text))
    throw new InvalidInput(
      `${text} is in a registry: an image that follows a registry is a DataImportCron, a volume made from one a DataVolume`,
    );
  throw new InvalidInput(`${text} is no source: write http://…, https://… or s3://<bucket>/<key>`);
};
