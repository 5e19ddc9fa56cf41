import { describe, expect, it } from 'vitest';
import { parseApiServerSource } from '#events/forward/source.ts';
import { parseDuration } from '#local-cluster/broker/manifest.ts';
import { parseBrokerManifests, readManifests } from '#local-cluster/broker/manifest.ts';
import { parsePingSource } from '#local-cluster/ping/ping.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

describe('parseDuration', () => {
  it.each([
    ['PT0.2S', 200],
    ['PT1H30M', 5_400_000],
    ['P1DT1S', 86_401_000],
    ['PT0S', 0],
    ['P', undefined],
    ['PT', undefined],
    ['200ms', undefined],
    ['P1M', undefined],
    ['-PT1S', undefined],
  ])('reads %s as %s ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe('the manifests of infra/knative', () => {
  it('are all read: Broker, Triggers and sources', async () => {
    const documents = (await readManifests('infra/knative')) as { kind: string }[];
    const ofKind = (kind: string) => documents.filter((document) => document.kind === kind);
    const { triggers } = parseBrokerManifests(documents);
    expect(triggers.length).toBe(ofKind('Trigger').length);
    expect(triggers.length).toBeGreaterThan(0);
    expect(ofKind('ApiServerSource').map(parseApiServerSource).length).toBeGreaterThan(0);
    expect(ofKind('PingSource').map(parsePingSource).length).toBeGreaterThan(0);
  });
});

describe('parseBrokerManifests', () => {
  const broker = (name: string) => ({ kind: 'Broker', metadata: { name }, spec: {} });
  const trigger = (name: string, of: string) => ({
    kind: 'Trigger',
    metadata: { name },
    spec: { broker: of, subscriber: { uri: 'http://f/' } },
  });

  it('leaves out the Triggers of other brokers', () => {
    const { triggers } = parseBrokerManifests([
      broker('a'),
      trigger('one', 'a'),
      trigger('two', 'b'),
      { kind: 'Service' },
      null,
    ]);
    expect(triggers.map(({ metadata }) => metadata.name)).toEqual(['one']);
  });

  it('wants exactly one Broker', () => {
    expect(() => parseBrokerManifests([])).toThrow(InvalidInput);
    expect(() => parseBrokerManifests([broker('a'), broker('b')])).toThrow(InvalidInput);
  });
});
