// The embedded API server alone in a process, to be killed and measured. Started by process.ts with the options as JSON; prints where it
// listens as one line of JSON, and ends with its standard input, so that it never outlives who started it.
import { flushCompileCache } from 'node:module';
import { type ApiServerOptions, createApiServer } from '#local-cluster/api-server/server.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as ApiServerOptions;
const { url, token, caPem } = await createApiServer(options);
process.stdout.write(`${JSON.stringify({ url, token, caPem })}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
// Node writes its cache when a process ends well, which one that gets killed never does.
flushCompileCache();
