// Colours of states in tables: on a terminal only, where NO_COLOR and --quiet do not forbid them.
import type { Terminal } from '#cli/command.ts';
import type { StateName } from '#shared/catalogue/image.ts';

/** Codes of green, yellow and red. */
const colours: Readonly<Record<StateName, number>> = { ready: 32, working: 33, failed: 31 };

/** The text of a state in its colour. */
export type Paint = (state: StateName, text: string) => string;

/** `undefined`: `out` shows no colours. */
export const paintOn = ({ showsColors, isQuiet }: Pick<Terminal, 'showsColors' | 'isQuiet'>): Paint | undefined =>
  showsColors === true && isQuiet !== true ? (state, text) => `\u001B[${colours[state]}m${text}\u001B[39m` : undefined;

/** Words by which Kubernetes and storage say that something is done, or never will be; anything else is in progress. */
const ended: Readonly<Record<string, StateName>> = {
  Bound: 'ready',
  Available: 'ready',
  Ready: 'ready',
  Succeeded: 'ready',
  ready: 'ready',
  Failed: 'failed',
  Lost: 'failed',
  failed: 'failed',
};

/** Of a word such as `Bound` or `Failed 2`; `undefined`: it tells no state. */
export const stateOfWord = (text: string): StateName | undefined => {
  const [word = ''] = text.split(/[ ,:]/);
  return word === '-' || word === '' ? undefined : Object.hasOwn(ended, word) ? ended[word] : 'working';
};
