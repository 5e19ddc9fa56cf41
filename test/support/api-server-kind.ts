// The API server of a test run: `BULLION_TEST_APISERVER`, which `npm run test:real` sets to real. Default: every test runs.
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { type ApiServerKind, apiServerKinds } from '#local-cluster/api.ts';

const given = process.env['BULLION_TEST_APISERVER'];
const asked = apiServerKinds.find((kind) => kind === given);
if (given !== undefined && asked === undefined) {
  throw new Error(`BULLION_TEST_APISERVER is ${apiServerKinds.join(' or ')}, not ${given}`);
}
const present: readonly ApiServerKind[] = findAssets(process.env) === undefined ? ['embedded'] : ['embedded', 'real'];

/** The one for flows. */
export const flowApiServer: ApiServerKind = asked ?? 'embedded';

/** Those for tests that compare with the original. */
export const presentApiServers: readonly ApiServerKind[] = asked === undefined ? present : [asked];
