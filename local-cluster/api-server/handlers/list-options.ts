// ListOptions of lists, watches and deletions of collections.
import { isFlag } from '../http/request.ts';
import { type FieldMatcher, parseFieldSelector } from '../selectors/field.ts';
import { type LabelMatcher, parseLabelSelector } from '../selectors/label.ts';
import type { ApiObject } from '../objects/object.ts';
import { type Cause, forbidden, notSupported } from '../schema/cause.ts';
import { badRequest, failure, invalid, plainError } from '../status/status.ts';
import type { Call } from './call.ts';
import type { Position } from '../store/pages.ts';

export interface ListOptions {
  readonly matches: (object: ApiObject) => boolean;
  /** Whether any selector restricts the list. */
  readonly isSelective: boolean;
  readonly limit: number;
  readonly continueToken: string;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly allowBookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}

const numberOf = (call: Call, name: string): number | undefined => {
  const text = call.info.query.get(name);
  if (text === null || text === '') return undefined;
  const value = Number(text);
  if (!Number.isInteger(value)) throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
  return value;
};

const matcher = (labels: LabelMatcher, fields: FieldMatcher | undefined) => (object: ApiObject) =>
  labels(object.metadata.labels) && (fields === undefined || fields(object));

const exact = 'Exact';
const notOlder = 'NotOlderThan';

const watchCauses = (options: ListOptions): Cause[] => {
  const { sendInitialEvents, resourceVersionMatch } = options;
  const path = 'resourceVersionMatch';
  if (sendInitialEvents === undefined) {
    return resourceVersionMatch === ''
      ? []
      : [forbidden(path, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')];
  }
  if (resourceVersionMatch === notOlder) return [];
  const missing = forbidden(path, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  return [missing, ...(resourceVersionMatch === '' ? [] : [notSupported(path, resourceVersionMatch, [notOlder])])];
};

const listCauses = (options: ListOptions): Cause[] => {
  const { resourceVersion, resourceVersionMatch, continueToken, sendInitialEvents } = options;
  const path = 'resourceVersionMatch';
  const causes: Cause[] = [];
  if (sendInitialEvents !== undefined)
    causes.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  if (resourceVersionMatch === '') return causes;
  if (continueToken !== '') causes.push(forbidden(path, 'resourceVersionMatch is forbidden if continue is provided'));
  if (resourceVersion === '')
    causes.push(forbidden(path, 'resourceVersionMatch is forbidden unless resourceVersion is provided'));
  if (resourceVersionMatch !== exact && resourceVersionMatch !== notOlder) {
    causes.push(notSupported(path, resourceVersionMatch, [exact, notOlder, '']));
  }
  if (resourceVersionMatch === exact && resourceVersion === '0') {
    causes.push(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return causes;
};

/** Throws a 400 or 422 for invalid options. */
export const parseListOptions = (call: Call, isWatch: boolean): ListOptions => {
  const { query } = call.info;
  const fields = parseFieldSelector(call.resource, query.get('fieldSelector'));
  const labelText = query.get('labelSelector') ?? '';
  const options: ListOptions = {
    matches: matcher(parseLabelSelector(labelText), fields),
    isSelective: fields !== undefined || labelText !== '',
    limit: Math.max(numberOf(call, 'limit') ?? 0, 0),
    continueToken: query.get('continue') ?? '',
    resourceVersion: query.get('resourceVersion') ?? '',
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
    allowBookmarks: isFlag(query, 'allowWatchBookmarks'),
    sendInitialEvents: query.has('sendInitialEvents') ? isFlag(query, 'sendInitialEvents') : undefined,
    timeoutSeconds: numberOf(call, 'timeoutSeconds'),
  };
  const causes = isWatch ? watchCauses(options) : listCauses(options);
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes);
  return options;
};

/** The version as a number; 0 when it is unset. Throws a 400 for lists, a bare 500 for watches. */
export const parseVersion = (text: string, isWatch = false): number => {
  if (text === '') return 0;
  if (/^\d+$/.test(text)) return Number(text);
  const message = `resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`;
  throw isWatch ? plainError(message) : badRequest(`invalid resource version: ${message}`);
};

/** The error for a version that does not exist yet. */
export const tooLarge = (asked: number, current: number) =>
  failure({
    code: 504,
    reason: 'Timeout',
    message: `Too large resource version: ${asked}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge' as never, message: 'Too large resource version', field: '' }],
      retryAfterSeconds: 1,
    },
  });

/** The continue token of a paged list: opaque to clients, it contains the version of the list and the last returned object. */
interface Continuation {
  /** -1: the newest version, for a client whose version has expired. */
  readonly version: number;
  readonly after: Position;
  /** Objects after `after` at this version, if the previous page has counted them: counting requires a scan of all of them. */
  readonly remaining?: number | undefined;
}

export const toToken = ({ version, after, remaining }: Continuation): string =>
  Buffer.from(
    JSON.stringify({
      v: 'meta.k8s.io/v1',
      rv: version,
      start: `${after.namespace}/${after.name}\u0000`,
      left: remaining,
    }),
  ).toString('base64url');

const invalidToken = (why: string) => badRequest(`invalid continue token: continue key is not valid: ${why}`);

/** As Go prints a character that JSON cannot start with. */
const strangerOf = (text: string): string => {
  const code = text.codePointAt(0) ?? 0;
  return code > 0x7e ? `\\u${code.toString(16).padStart(4, '0')}` : text.charAt(0);
};

/** Throws a 400 for anything that this server has not created. */
export const parseToken = (token: string): Continuation => {
  const decoded = Buffer.from(token, 'base64url').toString('latin1');
  try {
    const parsed = JSON.parse(Buffer.from(token, 'base64url').toString()) as {
      v?: string;
      rv?: number;
      start?: string;
      left?: number;
    };
    const [namespace = '', name = ''] = (parsed.start ?? '').replace(/\0$/, '').split('/');
    if (parsed.v !== 'meta.k8s.io/v1' || typeof parsed.rv !== 'number' || name === '')
      throw invalidToken('incorrect encoding');
    return { version: parsed.rv, after: { namespace, name }, remaining: parsed.left };
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw invalidToken(`invalid character '${strangerOf(decoded)}' looking for beginning of value`);
    }
    throw error;
  }
};
