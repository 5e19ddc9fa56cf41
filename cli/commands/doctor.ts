// `bullion doctor`: whether the installation works, what is stuck, and what to do. Reads only.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { type Finding, judgeInstallation } from '#cli/doctor/judge.ts';
import { observeInstallation } from '#cli/doctor/observe.ts';

const marks: Readonly<Record<Finding['is'], string>> = {
  good: 'ok',
  unknown: 'unknown',
  warning: 'warning',
  problem: 'PROBLEM',
};

export const printedFinding = ({ is, about, message, remedy }: Finding): string => {
  const line = `${marks[is].padEnd(9)}${about.padEnd(12)}`;
  const indent = ' '.repeat(line.length);
  const text = message.replaceAll('\n', `\n${indent}`);
  return `${line}${text}\n${remedy === undefined ? '' : `${indent}To do: ${remedy}\n`}`;
};

const run = async ({ kube, namespace, values, terminal }: Call) => {
  const isOne = values['namespace'] !== undefined;
  const around = { namespace: isOne ? namespace : undefined, now: terminal.now().getTime() };
  const findings = judgeInstallation(await observeInstallation(kube, around));
  terminal.out(findings.map(printedFinding).join(''));
  return findings.some(({ is }) => is === 'problem') ? exitCodes.failed : exitCodes.done;
};

export const doctorCommand: ClusterCommand = {
  name: 'doctor',
  arguments: '',
  summary: 'Checks the installation, and lists what failed or is stuck, with what to do.',
  more:
    'Looks at kinds, webhooks, functions, Broker and Triggers, storage classes, and at every object that Bullion serves. Changes nothing.\n' +
    'Exit code 1: something does not work. What you may not read is reported as unknown.\n\n  bullion doctor',
  options: {},
  run,
};
