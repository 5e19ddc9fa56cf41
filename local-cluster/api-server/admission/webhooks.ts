// The admission chain with webhooks: mutating ones in order, each with the object changed by the previous one, then all validating ones.
import { type Call, isDryRun } from '../handlers/call.ts';
import { clone, isSame } from '../objects/equal.ts';
import { decodeObject } from '../objects/decode.ts';
import { type ApiObject, toJson } from '../objects/object.ts';
import { applyJsonPatch } from '../patch/json-patch.ts';
import { type Resource, apiVersionOf } from '../registry/resource.ts';
import { badRequest, internalError } from '../status/status.ts';
import type { Store } from '../store/store.ts';
import type { Admission, Attributes } from '../handlers/call.ts';
import { holdConditions, resourceFor } from './match.ts';
import { type Review, type Verdict, buildReview, denial, parseVerdict } from './review.ts';
import type { Sender } from './send.ts';
import { type Webhook, createWebhookSource } from './webhook.ts';

interface Asked {
  readonly verdict: Verdict;
  readonly resource: Resource;
}

const failed = (webhook: Webhook, why: string) => internalError(`failed calling webhook "${webhook.name}": ${why}`);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const warn = (call: Call, verdict: Verdict): void => verdict.warnings.forEach((warning) => call.warnings.add(warning));

interface CallFailure {
  readonly failure: string;
}

const isFailure = (answer: Verdict | CallFailure): answer is CallFailure => 'failure' in answer;

export const createWebhookAdmission = (store: Store, sender: Sender): Admission => {
  const mutating = createWebhookSource(store, 'mutatingwebhookconfigurations');
  const validating = createWebhookSource(store, 'validatingwebhookconfigurations');

  const answerOf = async (webhook: Webhook, review: Review, mutates: boolean): Promise<Verdict | CallFailure> => {
    let body: unknown;
    try {
      body = await sender.send(webhook, review);
    } catch (error) {
      return { failure: `failed to call webhook: ${messageOf(error)}` };
    }
    try {
      return parseVerdict(body, review, mutates);
    } catch (error) {
      return { failure: `received invalid webhook response: ${messageOf(error)}` };
    }
  };

  /** Undefined when the webhook does not match, or failed with the policy Ignore. Throws its rejection. */
  const ask = async (
    webhook: Webhook,
    call: Call,
    attributes: Attributes,
    mutates: boolean,
  ): Promise<Asked | undefined> => {
    const resource = resourceFor(webhook, call, attributes);
    if (resource === undefined) return undefined;
    const review = buildReview(call, resource, attributes);
    if (!holdConditions(webhook, call, review.request)) return undefined;
    if (isDryRun(attributes.options) && webhook.hasSideEffects) {
      throw badRequest(`admission webhook "${webhook.name}" does not support dry run`);
    }
    const answer = await answerOf(webhook, review, mutates);
    if (isFailure(answer)) {
      if (webhook.ignoresFailure) return undefined;
      throw failed(webhook, answer.failure);
    }
    warn(call, answer);
    if (!answer.allowed) throw denial(webhook.name, answer);
    return { verdict: answer, resource };
  };

  const patched = (webhook: Webhook, call: Call, object: ApiObject, { verdict, resource }: Asked): ApiObject => {
    if (verdict.patch === undefined) return object;
    const shown = { ...object, apiVersion: apiVersionOf(resource) };
    const outcome = applyJsonPatch(toJson(shown), verdict.patch);
    if (outcome.kind === 'refused') throw internalError(outcome.detail ?? outcome.message);
    const back = { ...outcome.object, apiVersion: apiVersionOf(call.resource) };
    const decoded = decodeObject(clone(back), call.resource, { fieldValidation: 'Ignore', warn: () => undefined });
    return decoded;
  };

  const mutate: Admission['mutate'] = async (call, attributes) => {
    let { object } = attributes;
    const run = async (webhook: Webhook): Promise<boolean> => {
      const asked = await ask(webhook, call, { ...attributes, object }, true);
      if (asked === undefined) return false;
      const before = object;
      object = patched(webhook, call, object, asked);
      return !isSame(before, object);
    };
    const calledSince = new Set<Webhook>();
    const again = new Set<Webhook>();
    const webhooks = mutating();
    for (const webhook of webhooks) {
      if (await run(webhook)) for (const earlier of calledSince) again.add(earlier);
      if (webhook.reinvokes) calledSince.add(webhook);
    }
    for (const webhook of webhooks.filter((item) => again.has(item))) await run(webhook);
    return object;
  };

  return {
    mutate,
    mutateDelete: async (call, attributes) => {
      for (const webhook of mutating()) await ask(webhook, call, attributes, true);
    },
    validate: async (call, attributes) => {
      const asked = await Promise.allSettled(validating().map((webhook) => ask(webhook, call, attributes, false)));
      const refused = asked.find((result) => result.status === 'rejected');
      if (refused !== undefined) throw refused.reason;
    },
  };
};
