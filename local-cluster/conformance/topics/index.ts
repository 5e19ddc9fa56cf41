// All topics, in the order they run: those with the longest waits first.
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { aggregation } from '#local-cluster/conformance/topics/aggregation.ts';
import { builtinKinds } from '#local-cluster/conformance/topics/builtin-kinds.ts';
import { crdCel } from '#local-cluster/conformance/topics/crd-cel.ts';
import { crud } from '#local-cluster/conformance/topics/crud.ts';
import { discovery } from '#local-cluster/conformance/topics/discovery.ts';
import { dryRun } from '#local-cluster/conformance/topics/dry-run.ts';
import { errors } from '#local-cluster/conformance/topics/errors.ts';
import { eventsLeases } from '#local-cluster/conformance/topics/events-leases.ts';
import { fieldValidation } from '#local-cluster/conformance/topics/field-validation.ts';
import { finalizers } from '#local-cluster/conformance/topics/finalizers.ts';
import { garbageCollection } from '#local-cluster/conformance/topics/garbage-collection.ts';
import { identity } from '#local-cluster/conformance/topics/identity.ts';
import { list } from '#local-cluster/conformance/topics/list.ts';
import { names } from '#local-cluster/conformance/topics/names.ts';
import { namespaces } from '#local-cluster/conformance/topics/namespaces.ts';
import { subresources } from '#local-cluster/conformance/topics/subresources.ts';
import { tables } from '#local-cluster/conformance/topics/tables.ts';
import { watch } from '#local-cluster/conformance/topics/watch.ts';
import { reviews } from '#local-cluster/conformance/topics/admission/reviews.ts';
import { matching } from '#local-cluster/conformance/topics/admission/matching.ts';
import { failures } from '#local-cluster/conformance/topics/admission/failures.ts';
import { configurations } from '#local-cluster/conformance/topics/admission/configurations.ts';
import { ownership } from '#local-cluster/conformance/topics/apply/ownership.ts';
import { fields } from '#local-cluster/conformance/topics/apply/fields.ts';
import { grants } from '#local-cluster/conformance/topics/authorization/grants.ts';
import { accessReviews } from '#local-cluster/conformance/topics/authorization/access-reviews.ts';
import { definitions } from '#local-cluster/conformance/topics/crd-lifecycle/definitions.ts';
import { versions } from '#local-cluster/conformance/topics/crd-lifecycle/versions.ts';
import { pruning } from '#local-cluster/conformance/topics/crd-schema/pruning.ts';
import { validation } from '#local-cluster/conformance/topics/crd-schema/validation.ts';
import { reading } from '#local-cluster/conformance/topics/kubectl/reading.ts';
import { applying } from '#local-cluster/conformance/topics/kubectl/applying.ts';
import { changing } from '#local-cluster/conformance/topics/kubectl/changing.ts';
import { asking } from '#local-cluster/conformance/topics/kubectl/asking.ts';
import { jsonAndMerge } from '#local-cluster/conformance/topics/patch/json-and-merge.ts';
import { strategic } from '#local-cluster/conformance/topics/patch/strategic.ts';

/** JSON, merge and strategic-merge patches. */
const patch: Topic = {
  topic: 'patch',
  cases: { ...jsonAndMerge, ...strategic },
};

/** kubectl as users run it: the same output from either server. */
const kubectl: Topic = {
  topic: 'kubectl',
  cases: { ...reading, ...applying, ...changing, ...asking },
};

/** Structural schemas: what is pruned, defaulted, and rejected. */
const crdSchema: Topic = {
  topic: 'crd-schema',
  cases: { ...pruning, ...validation },
};

/** Custom resource definitions: their creation, changes and deletion. */
const crdLifecycle: Topic = {
  topic: 'crd-lifecycle',
  cases: { ...definitions, ...versions },
};

/** RBAC and access reviews. */
const authorization: Topic = {
  topic: 'authorization',
  cases: { ...grants, ...accessReviews },
};

/** Server-side apply and managed fields. */
const applyTopic: Topic = {
  topic: 'apply',
  cases: { ...ownership, ...fields },
};

/** Admission webhooks: when they are called, with which input, and the effect of their responses. */
const admission: Topic = {
  topic: 'admission',
  cases: { ...reviews, ...matching, ...failures, ...configurations },
};

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
