// The tests that run on a real control plane.
import { globSync } from 'node:fs';

/** The tests that compare the embedded API server with a real one, and that apply the manifests and run the functions on it: fast ones first, slow ones last. */
export const proofFiles: readonly string[] = [
  'local-cluster/real-api-server/server.test.ts',
  'infra/generate/installed.test.ts',
  'infra/generate/applied.test.ts',
  'infra/generate/rotation.test.ts',
  'local-cluster/controllers/controllers.test.ts',
  'local-cluster/envtest/knative/differential.test.ts',
  'local-cluster/envtest/knative/queue-proxy.test.ts',
  'local-cluster/envtest/knative/whole.test.ts',
  'local-cluster/conformance/real.test.ts',
  ...['lifecycle', 'outages', 'admission', 'admission-life', 'admission-objects', 'uninstall', 'quota'].map(
    (name) => `test/flows/${name}.test.ts`,
  ),
];

export const allFiles: readonly string[] = [
  ...new Set([...proofFiles, ...globSync('test/flows/*.test.ts').toSorted()]),
];
