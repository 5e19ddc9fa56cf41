// Colours of tables: which state has which, where none are shown, and that they do not move columns.
import { describe, expect, it } from 'vitest';
import { objectTable } from '#cli/output.ts';
import { paintOn, stateOfWord } from '#cli/paint.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import type { Found } from '#shared/catalogue/image.ts';
import { stripVTControlCharacters } from 'node:util';

const now = new Date('2026-01-02T04:04:05Z');
const aVolume = (phase: string, ready: 'True' | 'False'): Found => ({
  type: dataVolumeKind.type as Found['type'],
  image: {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name: phase.toLowerCase(), creationTimestamp: '2026-01-02T03:04:05Z' },
    status: { phase, conditions: [{ type: 'Ready', status: ready, reason: 'Because', message: '' }] },
  },
});
const found = [aVolume('Succeeded', 'True'), aVolume('ImportInProgress', 'False'), aVolume('Failed', 'False')];
const green = '\u001B[32m';
const yellow = '\u001B[33m';
const red = '\u001B[31m';

describe('a table', () => {
  it('shows states in colours, and keeps its columns', () => {
    const plain = objectTable(found, { isWide: false, now });
    const painted = objectTable(found, { isWide: false, now, paint: paintOn({ showsColors: true }) });
    const [heading = '', ...lines] = painted.split('\n');
    expect(heading).not.toContain('\u001B');
    const coloursIn = (line: string) => [green, yellow, red].map((code) => line.split(code).length - 1);
    expect(lines.slice(0, 3).map(coloursIn)).toEqual([
      [2, 0, 0],
      [0, 2, 0],
      [0, 0, 2],
    ]);
    expect(stripVTControlCharacters(painted)).toBe(plain);
  });

  it.each([
    ['a program reads it', { showsColors: false }],
    ['nobody said', {}],
    ['with --quiet', { showsColors: true, isQuiet: true }],
  ])('is plain where %s', (_what, terminal) => expect(paintOn(terminal)).toBeUndefined());
});

it.each([
  ['Bound', 'ready'],
  ['Succeeded', 'ready'],
  ['Failed 2', 'failed'],
  ['Running', 'working'],
  ['Terminating', 'working'],
  ['in-progress, ready', 'working'],
  ['constructor', 'working'],
  ['-', undefined],
])('takes the word %s for %s', (word, state) => expect(stateOfWord(word)).toBe(state));
