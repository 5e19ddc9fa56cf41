// Common parts of the cases of `patch`.
import type { CaseContext } from '#local-cluster/conformance/suite/case.ts';
import { type Body, configMap, core, create, pod } from '#local-cluster/conformance/topics/objects.ts';

export const createMap = async (t: CaseContext, data: Body = { a: '1', b: '2' }): Promise<string> => {
  const ns = await t.namespace();
  await create(t, core(ns, 'configmaps'), configMap('a', data));
  return core(ns, 'configmaps', 'a');
};

export const createPod = async (t: CaseContext, spec: Body = {}): Promise<string> => {
  const ns = await t.namespace();
  await create(t, core(ns, 'pods'), pod('a', spec));
  return core(ns, 'pods', 'a');
};
