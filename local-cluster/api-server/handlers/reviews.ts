// Reviews are queries, not objects: the current user, the validity of a token, the permissions of a user.
import { type ApiObject, type Fields, fieldsAt, isFields, textAt } from '../objects/object.ts';
import { decodeObject } from '../objects/decode.ts';
import { apiVersionOf } from '../registry/resource.ts';
import { respond } from '../http/respond.ts';
import type { Action } from '../auth/authorizer.ts';
import type { User } from '../auth/user.ts';
import { type Cause, invalid as invalidCause, required } from '../schema/cause.ts';
import type { Json } from '../schema/json.ts';
import { invalid } from '../status/status.ts';
import { readBody } from './body.ts';
import { type Call, timestamp } from './call.ts';
import { managerOf, parseWriteOptions } from './options.ts';
import { trackOwnership } from '../objects/ownership.ts';

type Answer = (call: Call, review: ApiObject) => Fields;

const userInfo = (user: User): Fields => ({
  username: user.username,
  ...(user.uid === undefined ? {} : { uid: user.uid }),
  groups: user.groups,
  ...(user.extra === undefined ? {} : { extra: user.extra }),
});

const toAction = (spec: Fields): Action => {
  const attributes = spec['resourceAttributes'];
  if (!isFields(attributes)) {
    const path = fieldsAt(spec, 'nonResourceAttributes');
    return { verb: textAt(path, 'verb') ?? '', path: textAt(path, 'path') ?? '' };
  }
  const of = (key: string) => textAt(attributes, key) ?? '';
  return {
    verb: of('verb'),
    group: of('group'),
    version: of('version'),
    plural: of('resource'),
    subresource: of('subresource'),
    namespace: of('namespace'),
    name: of('name'),
  };
};

const accessAnswer = (call: Call, user: User, spec: Fields): Fields => {
  const { allowed, reason } = call.api.authorizer.decide(user, toAction(spec));
  return { allowed, ...(reason === '' ? {} : { reason }) };
};

const attributeCauses = ({ resourceAttributes, nonResourceAttributes }: Fields): Cause[] => {
  if ((resourceAttributes === undefined) !== (nonResourceAttributes === undefined)) return [];
  if (resourceAttributes === undefined) {
    const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    return [invalidCause('spec.resourceAttributes', null, detail)];
  }
  const detail = 'cannot be specified in combination with resourceAttributes';
  return [invalidCause('spec.nonResourceAttributes', nonResourceAttributes as Json, detail)];
};

const subjectCauses = (call: Call, spec: Fields): Cause[] => {
  const { groups } = spec;
  const hasGroup = Array.isArray(groups) && groups.length > 0;
  if (call.resource.kind === 'SelfSubjectAccessReview' || hasGroup || (textAt(spec, 'user') ?? '') !== '') return [];
  return [invalidCause('spec.user', '', 'at least one of user or group must be specified')];
};

const scopeCauses = (call: Call, spec: Fields): Cause[] => {
  const asked = textAt(fieldsAt(spec, 'resourceAttributes'), 'namespace') ?? '';
  if (!call.resource.namespaced || asked === call.path.namespace) return [];
  return [invalidCause('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace')];
};

const checkAccessSpec = (call: Call, review: ApiObject): void => {
  const spec = fieldsAt(review, 'spec');
  const causes = [...attributeCauses(spec), ...subjectCauses(call, spec), ...scopeCauses(call, spec)];
  // The internal kind of a review has no name here.
  if (causes.length > 0) throw invalid({ group: call.resource.group, kind: '' }, '', causes);
};

const subjectOf = (spec: Fields): User => ({
  username: textAt(spec, 'user') ?? '',
  groups: Array.isArray(spec['groups']) ? spec['groups'].map(String) : [],
});

const subjectAccess: Answer = (call, review) => {
  checkAccessSpec(call, review);
  const spec = fieldsAt(review, 'spec');
  return accessAnswer(call, subjectOf(spec), spec);
};

const selfAccess: Answer = (call, review) => {
  checkAccessSpec(call, review);
  return accessAnswer(call, call.user, fieldsAt(review, 'spec'));
};

const tokenReview: Answer = (call, review) => {
  const spec = fieldsAt(review, 'spec');
  const token = textAt(spec, 'token') ?? '';
  if (token === '') throw invalid(call.resource, '', [required('spec.token')]);
  const asked = Array.isArray(spec['audiences']) ? spec['audiences'].map(String) : [];
  const wanted = asked.length === 0 ? call.api.tokens.audiences : asked;
  const verified = call.api.tokens.verify(token);
  const audiences = verified?.audiences.filter((audience) => wanted.includes(audience)) ?? [];
  if (verified === undefined || audiences.length === 0) return { user: {}, error: '[invalid bearer token]' };
  return { authenticated: true, user: userInfo(verified.user), audiences };
};

const rulesReview: Answer = (call, review) => {
  const namespace = textAt(fieldsAt(review, 'spec'), 'namespace') ?? '';
  const rules = call.api.authorizer.rulesFor(call.user, namespace);
  return {
    resourceRules: rules.filter((rule) => rule['nonResourceURLs'] === undefined),
    nonResourceRules: rules
      .filter((rule) => rule['nonResourceURLs'] !== undefined)
      .map((rule) => ({ verbs: rule['verbs'], nonResourceURLs: rule['nonResourceURLs'] })),
    incomplete: false,
  };
};

const answers: Readonly<Record<string, Answer>> = {
  SubjectAccessReview: subjectAccess,
  LocalSubjectAccessReview: subjectAccess,
  SelfSubjectAccessReview: selfAccess,
  SelfSubjectRulesReview: rulesReview,
  SelfSubjectReview: (call) => ({ userInfo: userInfo(call.user) }),
  TokenReview: tokenReview,
};

/** Reviews that are returned with their managed fields. */
const owned = new Set(['SelfSubjectAccessReview', 'SubjectAccessReview', 'LocalSubjectAccessReview', 'TokenReview']);

/** The response to a review; undefined when the resource is not a review. */
export const reviewOf = (call: Call): Answer | undefined => answers[call.resource.kind];

export const handleReview = async (call: Call, answer: Answer): Promise<Response> => {
  const options = parseWriteOptions(call);
  const given = decodeObject(await readBody(call.request), call.resource, {
    fieldValidation: options.fieldValidation,
    warn: (text) => call.warnings.add(text),
  });
  const by = { manager: managerOf(call, options), now: call.api.clock(), subresource: '' };
  const review = owned.has(given.kind) ? trackOwnership(call.resource, undefined, given, by) : given;
  const status = answer(call, review);
  const metadata =
    review.kind === 'SelfSubjectReview' ? { creationTimestamp: timestamp(call.api.clock()) } : review.metadata;
  const { spec } = review;
  return respond(
    {
      kind: review.kind,
      apiVersion: apiVersionOf(call.resource),
      metadata,
      ...(spec === undefined ? {} : { spec }),
      status,
    },
    { code: 201, encoding: call.form.encoding, warnings: [...call.warnings] },
  );
};
