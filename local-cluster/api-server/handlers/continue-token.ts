// The continue token of a paged list: opaque to clients, it names the version listed and the last object shown.
import type { Position } from '../store/pages.ts';
import { badRequest } from '../status/status.ts';

export interface Continuation {
  /** -1: the newest version, for a client whose version is gone. */
  readonly version: number;
  readonly after: Position;
  /** Objects behind `after` at this version, where the page before has counted them: counting costs a walk over all of them. */
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

/** As Go shows a character that JSON cannot start with. */
const strangerOf = (text: string): string => {
  const code = text.codePointAt(0) ?? 0;
  return code > 0x7e ? `\\u${code.toString(16).padStart(4, '0')}` : text.charAt(0);
};

/** Throws a 400 for anything this server has not made. */
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
