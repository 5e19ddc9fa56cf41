// The embedded API server alone in a process, to be killed and measured. Started by process.ts with the options as JSON; prints its address as
// one line of JSON, and ends with its standard input, so that it never outlives its parent.
import { flushCompileCache } from 'node:module';
import { type ApiServerOptions, createApiServer } from '#local-cluster/api-server/server.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as ApiServerOptions;
const { url, token, caPem } = await createApiServer(options);
process.stdout.write(`${JSON.stringify({ url, token, caPem })}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
// Node writes its cache at a regular exit, which a killed process never reaches.
flushCompileCache();
