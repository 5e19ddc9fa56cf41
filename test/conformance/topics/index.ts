// All topics, in the order they run.
import type { Topic } from '#test/conformance/suite/case.ts';
import { crud } from '#test/conformance/topics/crud.ts';
import { errors } from '#test/conformance/topics/errors.ts';
import { list } from '#test/conformance/topics/list.ts';
import { patch } from '#test/conformance/topics/patch.ts';
import { watch } from '#test/conformance/topics/watch.ts';

export const topics: readonly Topic[] = [errors, crud, list, watch, patch];
