// Our HTTP client in a Worker, which fails to start: lacks.test.ts.
import { createHttpClient } from '#shared/clients/http/client.ts';

export default {
  fetch: async (request: Request): Promise<Response> => {
    const client = createHttpClient({ isRefused: () => false, idleMs: 5_000 });
    const answer = await client.get({ url: new URL(await request.text()) });
    answer.discard();
    return new Response(String(answer.status));
  },
};
