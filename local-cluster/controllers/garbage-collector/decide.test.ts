import { describe, expect, it } from 'vitest';
import type { OwnerReference } from '#shared/api/object.ts';
import { type OwnerState, isUnblocked, judge } from '#local-cluster/controllers/garbage-collector/graph.ts';
import { createGraph, type Node, toNode } from '#local-cluster/controllers/garbage-collector/graph.ts';

const type = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const owner = (uid: string, block = false): OwnerReference => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: uid,
  uid,
  ...(block ? { blockOwnerDeletion: true } : {}),
});
const anObject = (uid: string, owners: readonly OwnerReference[] = [], finalizers: readonly string[] = []) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: uid, namespace: 'default', uid, ownerReferences: owners, finalizers },
});
const aNode = (...args: Parameters<typeof anObject>): Node => toNode(type, anObject(...args));

describe('judge', () => {
  it.each<[readonly OwnerState[], string]>([
    [[], 'nothing'],
    [['present'], 'nothing'],
    [['absent'], 'delete Background'],
    [['absent', 'absent'], 'delete Background'],
    [['present', 'absent'], 'drop-owners 1'],
    [['present', 'leaving-foreground'], 'drop-owners 1'],
    [['absent', 'unknown'], 'ask-again'],
    [['unknown'], 'ask-again'],
    [['present', 'unknown'], 'nothing'],
    [['leaving-foreground'], 'delete Foreground'],
  ])('of owners that are %j: %s', (states, expected) => {
    const owners = states.map((state, index) => [owner(String(index)), state] as const);
    const verdict = judge(aNode('x'), owners, true);
    const detail = 'propagation' in verdict ? verdict.propagation : 'uids' in verdict ? verdict.uids.join() : '';
    expect(`${verdict.do} ${detail}`.trim()).toBe(expected);
  });

  it('follows the deletion policy of the object itself', () => {
    const owners = [[owner('a'), 'absent']] as const;
    expect(judge(aNode('x', [], ['orphan']), owners, true)).toEqual({ do: 'delete', propagation: 'Orphan' });
    expect(judge(aNode('x', [], ['foregroundDeletion']), owners, false)).toEqual({
      do: 'delete',
      propagation: 'Foreground',
    });
  });
});

describe('isUnblocked', () => {
  it('waits only for dependents with blockOwnerDeletion', () => {
    expect(isUnblocked(aNode('a'), [aNode('b', [owner('a')])])).toBe(true);
    expect(isUnblocked(aNode('a'), [aNode('b', [owner('a')]), aNode('c', [owner('a', true)])])).toBe(false);
  });
});

describe('createGraph', () => {
  it('contains dependents before their owner, and drops removed references', () => {
    const graph = createGraph();
    graph.put(type, anObject('child', [owner('a'), owner('b')]));
    expect(graph.dependentsOf('a').map(({ uid }) => uid)).toEqual(['child']);
    graph.put(type, anObject('child', [owner('b')]));
    expect([graph.dependentsOf('a'), graph.dependentsOf('b').length]).toEqual([[], 1]);
    graph.remove('child');
    expect(graph.dependentsOf('b')).toEqual([]);
  });
});
