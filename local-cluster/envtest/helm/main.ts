// `npm run envtest:helm`: builds helm and prints its path.
import { spawnSync } from 'node:child_process';
import { env, stderr, stdout } from 'node:process';
import { hasGo, makeFolder } from '#local-cluster/envtest/build.ts';
import { findHelm, helmDirOf, helmModule } from '#local-cluster/envtest/helm/assets.ts';

const report = (line: string): void => void stderr.write(`helm: ${line}\n`);

if (findHelm(env) === undefined && hasGo(env)) {
  report(`building ${helmModule} (takes minutes the first time)`);
  await makeFolder(helmDirOf(env));
  spawnSync('go', ['install', '-trimpath', '-ldflags=-s -w', helmModule], {
    // Outside of any module: its own versions count.
    cwd: '/',
    env: { ...env, CGO_ENABLED: '0', GOFLAGS: '-p=2', GOBIN: helmDirOf(env) },
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: 20 * 60_000,
  });
}
const found = findHelm(env);
if (found !== undefined) stdout.write(`${found}\n`);
else report(hasGo(env) ? 'not built: go install failed' : 'skipped: no Go toolchain (`go version` fails)');
process.exitCode = found === undefined && hasGo(env) ? 1 : 0;
