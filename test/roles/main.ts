// `npm run test:roles`: every flow on the embedded API server with its calls written down, then the roles held against them.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const runTests = async (paths: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> => {
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...paths], {
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  });
  return new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
};

const folder = await mkdtemp(join(tmpdir(), 'bullion-calls-'));
try {
  const flows = await runTests(['test/flows'], { BULLION_CALLS: folder });
  const roles = await runTests(['test/roles'], { BULLION_CALLS_OF: folder });
  process.exitCode = flows || roles;
} finally {
  await rm(folder, { recursive: true, force: true });
}
