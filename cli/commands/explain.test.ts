// `bullion explain` says what the reference says, of every reason, and of alerts what their runbooks say.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explainCommand, explained } from './explain.ts';
import { exitCodes } from '#cli/command.ts';

const explain = async (...positionals: readonly string[]) => {
  let out = '';
  const terminal = {
    out: (text: string) => void (out += text),
    err: () => undefined,
    isLive: false,
    now: () => new Date(0),
  };
  const code = await explainCommand.runPlain({
    positionals,
    values: {},
    terminal,
    signal: new AbortController().signal,
  });
  return { out, code };
};

describe('bullion explain', () => {
  it.each([
    [
      'ChecksumMismatch',
      /^ChecksumMismatch \(The source\)\n {2}the file does not have .*\n {2}next: fails\n {2}to do: publish the file[^]*\n {2}page: https:\/\/bullion\.dev\/reasons#ChecksumMismatch\n/,
    ],
    ['SourceStalled', /SourceInterrupted, SourceStalled: .*\n.*\n {2}next: retries, resumes/],
    ['WorkerEvicted', /^WorkerEvicted \(The worker and the storage\)[^]*reasons#WorkerReason$/m],
    ['NotReady', /HTTP: 409, 503/],
    ['BullionPollOverdue', /\(Alerts\)\n {2}Meaning\n[^]*\n {4}kubectl get dic -A\n/],
  ])('says what %s means', async (name, text) => {
    const { out, code } = await explain(name);
    expect(out).toMatch(text);
    expect(code).toBe(exitCodes.done);
  });

  it('says each meaning of a reason that has several', () =>
    expect(explained('SecretMissing').match(/^SecretMissing \(.*\)$/gm)).toEqual([
      'SecretMissing (Copies)',
      'SecretMissing (Backups)',
    ]));

  it.each([
    ['VirtualMachineImage', ['In progress', 'Events']],
    ['GoldenImagePolicy', ['In progress', 'Policies of golden images', 'Events']],
    [undefined, ['In progress', 'Policies of golden images', 'Events']],
  ])('says of an object of kind %s what a reason may mean there', (kind, sections) =>
    expect([...explained('Ready', kind).matchAll(/^Ready \((.*)\)$/gm)].map(([, section]) => section)).toEqual(
      sections,
    ),
  );

  it('says the only meaning there is', () =>
    expect(explained('Unauthorized', 'DataVolume')).toContain('Unauthorized (Polls of sources)'));

  it('knows every alert', () => {
    const runbooks = readdirSync(join(import.meta.dirname, '../../infra/runbooks')).filter(
      (name) => name !== 'README.md',
    );
    for (const runbook of runbooks) expect(explained(runbook.replace('.md', ''))).toContain('Mitigation');
  });

  it('lists what there is, and names what is like a wrong name', async () => {
    expect((await explain()).out.split('\n')).toContain('ChecksumMismatch');
    await expect(explain('checksumm')).rejects.toThrow(
      'no reason or alert checksumm; there is ChecksumMismatch, ChecksumMissing',
    );
    await expect(explain('x y z')).rejects.toThrow('bullion explain lists them');
  });
});
