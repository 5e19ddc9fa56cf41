// All topics, in the order they run: those that wait longest first.
import type { Topic } from '#test/conformance/suite/case.ts';
import { aggregation } from '#test/conformance/topics/aggregation.ts';
import { admission } from '#test/conformance/topics/admission.ts';
import { applyTopic } from '#test/conformance/topics/apply.ts';
import { authorization } from '#test/conformance/topics/authorization.ts';
import { builtinKinds } from '#test/conformance/topics/builtin-kinds.ts';
import { crdCel } from '#test/conformance/topics/crd-cel.ts';
import { crdLifecycle } from '#test/conformance/topics/crd-lifecycle.ts';
import { crdSchema } from '#test/conformance/topics/crd-schema.ts';
import { crud } from '#test/conformance/topics/crud.ts';
import { discovery } from '#test/conformance/topics/discovery.ts';
import { dryRun } from '#test/conformance/topics/dry-run.ts';
import { errors } from '#test/conformance/topics/errors.ts';
import { eventsLeases } from '#test/conformance/topics/events-leases.ts';
import { fieldValidation } from '#test/conformance/topics/field-validation.ts';
import { finalizers } from '#test/conformance/topics/finalizers.ts';
import { garbageCollection } from '#test/conformance/topics/garbage-collection.ts';
import { identity } from '#test/conformance/topics/identity.ts';
import { kubectl } from '#test/conformance/topics/kubectl.ts';
import { list } from '#test/conformance/topics/list.ts';
import { names } from '#test/conformance/topics/names.ts';
import { namespaces } from '#test/conformance/topics/namespaces.ts';
import { patch } from '#test/conformance/topics/patch.ts';
import { subresources } from '#test/conformance/topics/subresources.ts';
import { tables } from '#test/conformance/topics/tables.ts';
import { watch } from '#test/conformance/topics/watch.ts';

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
