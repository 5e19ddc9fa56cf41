// One small request about a file, to its mirrors in order, then to the file itself. Mirrors get no credentials. Used by polls and where signatures are
// read; transfers have their own way, which resumes.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import type { HostHealth } from '#shared/clients/http/health.ts';
import { type FollowCall, followRedirects, toDestination } from '#shared/clients/http/redirect.ts';
import { isRetryable, messageOf } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

export interface MirroredCall extends FollowCall {
  /** URLs of the file of `origin` at its mirrors. */
  readonly mirrors: readonly string[];
  readonly health: HostHealth;
}

export interface PlacedAnswer {
  readonly response: HttpResponse;
  /** The mirror or the file itself, if there are mirrors. */
  readonly from?: string | undefined;
}

/** What a file that exists is answered with; also that HEAD is unknown, after which the caller asks with GET. */
const isAnswer = (status: number, method: FollowCall['method']): boolean =>
  (status >= 200 && status < 300) || status === 304 || (method === 'HEAD' && (status === 405 || status === 501));

type Asked = { readonly answer: PlacedAnswer } | { readonly problems: readonly string[] };

/** Hosts that rest are passed over, for the file itself is asked in the end. */
const askMirrors = async (client: HttpClient, { mirrors, health, ...call }: MirroredCall): Promise<Asked> => {
  const problems: string[] = [];
  for (const mirror of mirrors) {
    const url = new URL(mirror);
    const from = redactUrl(mirror);
    const seconds = Math.ceil(health.take(url.host) / 1000);
    if (seconds > 0) {
      problems.push(`${url.host} has failed several times in a row, and is not asked again for ${seconds} seconds`);
      continue;
    }
    try {
      const { response } = await followRedirects(client, { ...call, origin: toDestination(url, {}) });
      const isFound = isAnswer(response.status, call.method);
      if (response.status >= 500 && !isFound) health.failed(url.host);
      else health.answered(url.host);
      if (isFound) return { answer: { response, from } };
      response.discard();
      problems.push(`${from} answered ${response.status}`);
    } catch (error) {
      call.signal?.throwIfAborted();
      if (!(error instanceof HttpFailure)) throw error;
      if (isRetryable(error)) health.failed(url.host);
      else health.answered(url.host);
      problems.push(messageOf(error));
    }
  }
  return { problems };
};

/** `undefined`: no mirror has it. */
export const askMirrorsOnly = async (client: HttpClient, call: MirroredCall): Promise<PlacedAnswer | undefined> => {
  const asked = await askMirrors(client, call);
  return 'answer' in asked ? asked.answer : undefined;
};

/** Throws HttpFailure. The last answer may be any status. */
export const askPlaces = async (client: HttpClient, call: MirroredCall): Promise<PlacedAnswer> => {
  const asked = await askMirrors(client, call);
  if ('answer' in asked) return asked.answer;
  const { mirrors, health: _, ...own } = call;
  try {
    const { response } = await followRedirects(client, own);
    return { response, from: mirrors.length === 0 ? undefined : redactUrl(call.origin.url.href) };
  } catch (error) {
    if (!(error instanceof HttpFailure) || asked.problems.length === 0) throw error;
    throw new HttpFailure(error.code, `${error.message}; elsewhere: ${asked.problems.join('; ')}`, { cause: error });
  }
};
