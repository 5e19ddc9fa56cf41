import { describe, expect, it } from 'vitest';
import { mapPaths, mappingOf } from '#local-cluster/controllers/jobs/launch.ts';

const mappings = [
  mappingOf('/data', '/host/volumes/a/fs'),
  mappingOf('/data/cache/', '/host/scratch'),
  mappingOf('/dev/disk', '/host/volumes/b/block'),
];

describe('mapPaths', () => {
  it.each([
    ['a whole path', '/data', '/host/volumes/a/fs'],
    ['the beginning of a path', '/data/disk.img', '/host/volumes/a/fs/disk.img'],
    ['the longest of several', '/data/cache/x', '/host/scratch/x'],
    [
      'inside JSON',
      '{"path":"/data/disk.img","dev":"/dev/disk"}',
      '{"path":"/host/volumes/a/fs/disk.img","dev":"/host/volumes/b/block"}',
    ],
    ['after an equals sign', '--target=/data', '--target=/host/volumes/a/fs'],
    ['in a list', '/data:/dev/disk', '/host/volumes/a/fs:/host/volumes/b/block'],
    ['before the end of a sentence', 'in /data, mostly', 'in /host/volumes/a/fs, mostly'],
  ])('replaces %s', (_, text, expected) => {
    expect(mapPaths(text, mappings)).toBe(expected);
  });

  it.each([
    '/data2',
    '/database/x',
    'http://host/data',
    '/srv/data/x',
    './data',
    'file:///data',
    '/data.bak',
    '/dev/disk-1',
  ])('does not change %s', (text) => {
    expect(mapPaths(text, mappings)).toBe(text);
  });

  it('does not process its own replacements again', () => {
    expect(mapPaths('/a', [mappingOf('/a', '/b/x'), mappingOf('/b', '/c')])).toBe('/b/x');
  });
});
