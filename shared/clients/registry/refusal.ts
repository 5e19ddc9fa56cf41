// An answer that is no success, as an error with the registry's own words. Called by session.ts.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { RegistryFailure } from '#shared/clients/registry/errors.ts';
import { type RegistryPace, rateLimited } from '#shared/clients/registry/pace.ts';
import { redact } from '#shared/runtime/redact.ts';

/** Manifests, tokens and lists of tags; more is no honest answer. */
const mostBytes = 8 * 1024 * 1024;
const mostWords = 300;

/** The whole body, up to a limit. Throws RegistryFailure beyond it. */
export const readBody = async (response: HttpResponse, what: string): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    parts.push(chunk);
    length += chunk.length;
    if (length > mostBytes) throw new RegistryFailure('InvalidImage', `${what} is larger than ${mostBytes} bytes`);
  }
  return Buffer.concat(parts);
};

export const readJson = async (response: HttpResponse, what: string): Promise<object> => {
  const bytes = await readBody(response, what);
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw new RegistryFailure('RegistryFailed', `${what} answered with something else than JSON`);
};

/** `errors: [{code, message}]` as the distribution specification has it. */
const wordsOf = async (response: HttpResponse): Promise<string> => {
  try {
    const { errors } = (await readJson(response, '')) as { errors?: { code?: string; message?: string }[] };
    const words = (errors ?? []).map(({ code, message }) =>
      [code, message].filter((text) => (text ?? '') !== '').join(': '),
    );
    return redact(words.join('; ')).slice(0, mostWords);
  } catch {
    return '';
  }
};

export interface RefusalContext {
  readonly host: string;
  readonly what: string;
  readonly pace: RegistryPace;
  readonly hasCredentials: boolean;
}

/** Reads the body. */
export const refusalOf = async (response: HttpResponse, context: RefusalContext): Promise<RegistryFailure> => {
  const { host, what, pace, hasCredentials } = context;
  const { status } = response;
  const words = await wordsOf(response);
  const said = `${host} answered ${status} for ${what}${words === '' ? '' : ` (${words})`}`;
  if (status === 429) return rateLimited(host, Math.max(1, pace.waitSeconds(host)));
  if (status === 401 || status === 403) {
    const hint = hasCredentials
      ? 'check the Secret of secretRef'
      : 'name a Secret with credentials in secretRef, or check the name';
    return new RegistryFailure('Unauthorized', `${said}: ${hint}`);
  }
  const seconds = pace.waitSeconds(host);
  const asked = seconds === 0 ? {} : { retryAfterSeconds: seconds };
  if (status === 503) return new RegistryFailure('RateLimited', said, asked);
  if (status === 404) return new RegistryFailure('ImageNotFound', `${said}: check repository, tag and digest`);
  return new RegistryFailure('RegistryFailed', said, asked);
};
