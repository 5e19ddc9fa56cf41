// A Worker is reached from the whole internet: whoever does not show the token learns nothing.
import { showsToken } from '#shared/runtime/bearer.ts';
import type { Logger } from '#shared/runtime/log.ts';

interface App {
  fetch(request: Request): Response | Promise<Response>;
}

/** `name`: the setting that holds the token, for the words of the refusal. */
export const guarded = async (
  app: App,
  request: Request,
  ...[{ token, name }, log]: [{ readonly token: string; readonly name: string }, Logger]
): Promise<Response> => {
  if (showsToken(request.headers, token)) return app.fetch(request);
  log.warn('caller refused', { reason: 'wrong token' });
  return new Response(`the Authorization header is not "Bearer " and the token of ${name}`, { status: 401 });
};
