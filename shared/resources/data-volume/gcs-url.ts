// `source.gcs.url` of a DataVolume: a public object of Google's store, or of one that speaks as it does, is a file on the web.
import { type Parsed } from '#shared/backends/rules/checksum.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';

const publicEndpoint = 'https://storage.googleapis.com';

export const toGcsUrl = (text: string): Parsed<string> => {
  const match = /^gs:\/\/([a-z0-9][a-z0-9._-]+)\/(.+)$/.exec(text.trim());
  if (match !== null) {
    const key = (match[2] ?? '').split('/').map(encodeURIComponent).join('/');
    return { value: `${publicEndpoint}/${match[1] ?? ''}/${key}` };
  }
  if (text.trim().startsWith('gs:')) return { problem: 'names no object; write gs://<bucket>/<object>' };
  return parseSourceUrl(text);
};
