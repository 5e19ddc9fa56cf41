// The real `cosign` (2.x), where `COSIGN` is the path of one: without any public service, with keys of its own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Its path. */
export const program = process.env['COSIGN'];

export const hasCosign = (): boolean => {
  if (program === undefined) console.warn('skipped: set COSIGN to the path of cosign 2.x');
  return program !== undefined;
};

/** Of a predicate that the program accepts. */
const predicates = {
  slsaprovenance1: {
    buildDefinition: { buildType: 'https://vendor.example/build', externalParameters: {}, resolvedDependencies: [] },
    runDetails: { builder: { id: 'https://vendor.example/builder' }, metadata: { invocationId: '1' } },
  },
  spdxjson: { spdxVersion: 'SPDX-2.3', SPDXID: 'SPDXRef-DOCUMENT', name: 'disk', packages: [] },
  cyclonedx: { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, components: [] },
} as const;
export type PredicateName = keyof typeof predicates;

export interface Cosign {
  /** In PEM. */
  readonly publicKey: string;
  readonly sign: (image: string, ...more: readonly string[]) => void;
  readonly attest: (image: string, type: PredicateName, ...more: readonly string[]) => void;
  readonly close: () => void;
}

const common = ['--key', 'cosign.key', '--tlog-upload=false', '--allow-insecure-registry', '--yes'] as const;

export const startCosign = (): Cosign => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-cosign-'));
  const run = (...args: readonly string[]): void => {
    const env = { PATH: process.env['PATH'], HOME: dir, COSIGN_PASSWORD: '' };
    const { status, stderr, error } = spawnSync(program ?? 'cosign', args, { cwd: dir, env });
    if (status !== 0) throw new Error(`cosign ${args.join(' ')}: ${error?.message ?? stderr.toString()}`);
  };
  run('generate-key-pair');
  return {
    publicKey: readFileSync(join(dir, 'cosign.pub'), 'utf8'),
    sign: (image, ...more) => run('sign', ...common, ...more, image),
    attest: (image, type, ...more) => {
      writeFileSync(join(dir, 'predicate.json'), JSON.stringify(predicates[type]));
      run('attest', ...common, '--type', type, '--predicate', 'predicate.json', ...more, image);
    },
    close: () => rmSync(dir, { recursive: true, force: true }),
  };
};
