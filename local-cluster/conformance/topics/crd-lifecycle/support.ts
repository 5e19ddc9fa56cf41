// Common parts of the cases of `crd-lifecycle`.
import {} from '#local-cluster/conformance/topics/custom.ts';
import { type Body } from '#local-cluster/conformance/topics/objects.ts';

const open = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
export const version = (name: string, more: Body = {}): Body => ({
  name,
  served: true,
  storage: false,
  schema: open,
  ...more,
});
