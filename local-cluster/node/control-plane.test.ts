import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readVersions } from '#local-cluster/envtest/assets.ts';
import { replaceFlags } from '#local-cluster/node/control-plane.ts';

it('a flag that is given again replaces the one before, whatever its value', () => {
  const flags = replaceFlags(['--a=1', '--b', '--c=x,y', '--long-c=z'], ['--b=false', '--c=', '--d']);
  expect(flags).toEqual(['--a=1', '--long-c=z', '--b=false', '--c=', '--d']);
});

it("the kubelet has the control plane's version", () => {
  const goMod = readFileSync(join(import.meta.dirname, 'kubernetes/go.mod'), 'utf8');
  expect(/k8s\.io\/kubernetes (v\S+)/.exec(goMod)?.[1]).toBe(readVersions().kubernetes);
});
