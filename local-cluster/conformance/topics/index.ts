// All topics, in the order they run: those that wait longest first.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { aggregation } from '#local-cluster/conformance/topics/aggregation.ts';
import { admission } from '#local-cluster/conformance/topics/admission.ts';
import { applyTopic } from '#local-cluster/conformance/topics/apply.ts';
import { authorization } from '#local-cluster/conformance/topics/authorization.ts';
import { builtinKinds } from '#local-cluster/conformance/topics/builtin-kinds.ts';
import { crdCel } from '#local-cluster/conformance/topics/crd-cel.ts';
import { crdLifecycle } from '#local-cluster/conformance/topics/crd-lifecycle.ts';
import { crdSchema } from '#local-cluster/conformance/topics/crd-schema.ts';
import { crud } from '#local-cluster/conformance/topics/crud.ts';
import { discovery } from '#local-cluster/conformance/topics/discovery.ts';
import { dryRun } from '#local-cluster/conformance/topics/dry-run.ts';
import { errors } from '#local-cluster/conformance/topics/errors.ts';
import { eventsLeases } from '#local-cluster/conformance/topics/events-leases.ts';
import { fieldValidation } from '#local-cluster/conformance/topics/field-validation.ts';
import { finalizers } from '#local-cluster/conformance/topics/finalizers.ts';
import { garbageCollection } from '#local-cluster/conformance/topics/garbage-collection.ts';
import { identity } from '#local-cluster/conformance/topics/identity.ts';
import { kubectl } from '#local-cluster/conformance/topics/kubectl.ts';
import { list } from '#local-cluster/conformance/topics/list.ts';
import { names } from '#local-cluster/conformance/topics/names.ts';
import { namespaces } from '#local-cluster/conformance/topics/namespaces.ts';
import { patch } from '#local-cluster/conformance/topics/patch.ts';
import { subresources } from '#local-cluster/conformance/topics/subresources.ts';
import { tables } from '#local-cluster/conformance/topics/tables.ts';
import { watch } from '#local-cluster/conformance/topics/watch.ts';

export const topics: readonly Topic[] = [
  garbageCollection,
  namespaces,
  errors,
  crud,
  list,
  watch,
  patch,
  applyTopic,
  dryRun,
  fieldValidation,
  subresources,
  names,
  finalizers,
  crdLifecycle,
  crdSchema,
  crdCel,
  tables,
  aggregation,
  admission,
  identity,
  authorization,
  eventsLeases,
  builtinKinds,
  discovery,
  kubectl,
];
