// All topics, in the order they run.
import type { Topic } from '#test/conformance/suite/case.ts';
import { applyTopic } from '#test/conformance/topics/apply.ts';
import { crud } from '#test/conformance/topics/crud.ts';
import { dryRun } from '#test/conformance/topics/dry-run.ts';
import { errors } from '#test/conformance/topics/errors.ts';
import { fieldValidation } from '#test/conformance/topics/field-validation.ts';
import { finalizers } from '#test/conformance/topics/finalizers.ts';
import { list } from '#test/conformance/topics/list.ts';
import { names } from '#test/conformance/topics/names.ts';
import { patch } from '#test/conformance/topics/patch.ts';
import { subresources } from '#test/conformance/topics/subresources.ts';
import { watch } from '#test/conformance/topics/watch.ts';

export const topics: readonly Topic[] = [
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
];
